# The gateway in a container: a wheel of this tree, its packages by hash, nobody's rights. docs/howto/docker.md tells how.
#
#   docker build -t garra .
#   docker run -d --name garra -e GARRA_GATEWAY_TOKEN=… -p 127.0.0.1:18789:18789 -v garra:/home/garra/.garra garra

ARG BASE=python:3.11-slim

FROM ${BASE} AS build
# Further packages, by the names in requirements/extras: --build-arg EXTRAS="matrix memory"
ARG EXTRAS=""
WORKDIR /src
COPY requirements requirements
RUN python -m venv --without-pip /opt/garra \
 && for lock in run $(for extra in ${EXTRAS}; do echo "extras/${extra}"; done); do \
      python -m pip --python /opt/garra/bin/python install --no-cache-dir --disable-pip-version-check \
        --only-binary :all: --require-hashes -r "requirements/${lock}.lock" || exit 1; \
    done
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN python -m pip wheel --no-cache-dir --disable-pip-version-check --no-deps -w /wheel . \
 && python -m pip --python /opt/garra/bin/python install --no-cache-dir --disable-pip-version-check \
      --no-deps --no-index /wheel/*.whl \
 && touch /opt/garra/garra-image \
 && /opt/garra/bin/python -m compileall -q /opt/garra/lib

FROM ${BASE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --user-group --create-home --shell /usr/sbin/nologin garra \
 && install -d -o garra -g garra -m 700 /home/garra/.garra
COPY --from=build /opt/garra /opt/garra
ENV PATH=/opt/garra/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    GARRA_STATE_DIR=/home/garra/.garra \
    GARRA_GATEWAY_BIND=lan \
    GARRA_GATEWAY_PORT=18789
USER 1000:1000
WORKDIR /home/garra
VOLUME ["/home/garra/.garra"]
EXPOSE 18789
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
  CMD ["python", "-I", "-c", "import http.client as h, os, sys; c = h.HTTPConnection('127.0.0.1', int(os.environ['GARRA_GATEWAY_PORT']), timeout=4); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["tini", "--", "garra"]
CMD ["gateway", "run"]
