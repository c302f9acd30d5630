"""The same at Vertex AI: an address of a project and a place, and Google Cloud's own way to log in."""

from __future__ import annotations

from garra.builtin.apis.google_generative_ai.adc import Tokens
from garra.builtin.apis.google_generative_ai.api import GoogleGenerativeAI, asked
from garra.core.errors import Failure, FailureKind, RunFailed
from garra.sdk.cloud import Cloud, address, told
from garra.sdk.model import ModelRequest
from garra.sdk.ports import Clock, Http, Spawn


class GoogleVertex(GoogleGenerativeAI):
    """`sdk.model.Api` for Gemini at Vertex AI."""

    family = "google-vertex"

    def __init__(self, http: Http, spawn: Spawn, clock: Clock, cloud: Cloud) -> None:
        super().__init__(http, spawn, clock, cloud)
        self._tokens = Tokens(http, clock, cloud)

    async def where(self, request: ModelRequest, key: str | None) -> tuple[str, dict[str, str]]:
        """With a key the address needs no project; without one it does, and a token from the machine's login."""
        model = request.model
        base = address(model, self.cloud).replace("//global-aiplatform.", "//aiplatform.")
        if key:
            return asked(f"{base}/publishers/google", model), {"x-goog-api-key": key}
        token, known = await self._tokens.now(model.via)
        project = told(model, self.cloud, "project", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT") or known
        place = told(model, self.cloud, "location", "GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION") or "global"
        if not project:
            line = f"no project for {model.provider}: set GOOGLE_CLOUD_PROJECT, or params.project of the model"
            raise RunFailed(Failure(FailureKind.NO_KEY, line, provider=model.provider, model=model.id))
        url = asked(f"{base}/projects/{project}/locations/{place}/publishers/google", model)
        return url, {"authorization": f"Bearer {token}"}
