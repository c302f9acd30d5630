"""Which programs can do anything, and which arguments leave the others harmless.

A program that runs others, that interprets what it is given, or that writes where it is told, is never let through by
its name: an entry of the allowlist must hold its very arguments. The same goes for a program that has such an option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from garra.core.value import frozen

_SHELLS = "sh bash rbash dash ash zsh ksh ksh93 mksh oksh yash csh tcsh fish elvish nu xonsh pwsh powershell cmd"
_INTERPRETERS = """
    python pythonw pypy ipython jython micropython bpython node nodejs deno bun tsx ts-node perl ruby irb lua luajit
    texlua php php-cgi phpdbg tclsh wish expect guile racket sbcl clisp ecl csi gsi scheme ocaml ocamlrun ghc runghc
    runhaskell ghci stack cabal erl escript elixir iex mix java jshell javaws groovy scala kotlin kotlinc clojure
    clj julia r rscript octave matlab sage gnuplot maxima bc dc gawk mawk nawk awk original-awk sed gsed osascript
    qjs js rhino dart swift go cargo rustc rustup zig nim crystal v sqlite3 duckdb mysql mariadb psql mongo mongosh
    redis-cli clickhouse isql sqlplus jrunscript cscript wscript mshta rundll32 regsvr32 certutil bitsadmin forfiles
"""
_WRAPPERS = """
    env xargs parallel find gfind fd fdfind fdupes command exec eval builtin source time gtime nice renice ionice
    nohup setsid timeout gtimeout stdbuf chrt taskset flock unbuffer numactl prlimit choom cpulimit faketime
    fakeroot fakechroot proot chroot unshare nsenter setpriv setarch linux32 linux64 i386 x86_64 capsh runcon newgrp
    sg sudo sudoedit doas su pkexec runuser gosu su-exec script scriptreplay watch entr inotifywait run-parts
    start-stop-daemon daemonize daemon at atd batch crontab anacron systemd-run systemctl journalctl loginctl
    machinectl service initctl launchctl open xdg-open gio start explorer bwrap firejail flatpak snap nix nix-shell
    nix-env nix-build guix docker podman nerdctl kubectl oc helm ctr crictl runc crun lxc lxc-attach lxd incus
    vagrant virsh qemu wine box64 busybox toybox coreutils sbase ubase ssh slogin sshpass mosh autossh scp sftp
    rsync rclone telnet ftp lftp tftp nc ncat netcat socat curl wget wget2 aria2c axel http https xh tmux screen
    byobu zellij dtach abduco reptyr strace ltrace ptrace perf gdb lldb valgrind rr bpftrace dtrace ld ld.so
    ld-linux ldd ip tcpdump tshark nmap openvpn dhclient ifup pppd logsave logger mail mailx sendmail mutt
    systemd-cat systemd-inhibit systemd-socket-activate systemd-stdio-bridge systemd-nspawn systemd-ask-password
    systemd-tmpfiles systemd-sysusers systemd-repart busctl dbus-run-session dbus-launch dbus-send dbus-daemon
    dbus-update-activation-environment gdbus gapplication pkcon uclampset rtcwake switch_root pivot_root not sotruss
    memusage catchsegv heaptrack heaptrack_print callgrind_annotate gcore gdbtui vgdb scriptlive msgexec msgfilter
    prove perldoc perlbug perlthanks perlivp corelist cpan instmodsh pydoc pdb pygettext lli opt bugpoint llvm-reduce
    llvm-jitlink jdb jhsdb jpackage jlink jar jcmd rpcgen pg_ctl pg_virtualenv postgres pgbench initdb doveadm debconf
    ucf ssh-copy-id chromium chrome google-chrome chromium-browser firefox sensible-browser x-www-browser www-browser
    gnome-www-browser run-mailcap xdg-email xdg-desktop-menu xdg-mime xmessage gcloud gsutil aws az scalar
    groff troff pic grog soelim nroff mandb catman rmail postmap postalias postfix telinit init getty
    agetty login sulogin in.telnetd inetd xinetd tcpsvd udpsvd chpst softlimit envdir envuidgid setuidgid setlock
    s6-setsid s6-env execlineb runsv runsvdir svc sem dsh pssh clush pdsh rlwrap rlfe
    xvfb-run xinit startx i3-msg swaymsg host-spawn tig hub exiftool sqlmap hping3 msfconsole vboxmanage fzf sk peco lf
    ranger nnn vifm watchexec reflex nodemon pm2 forever supervisord supervisorctl s6-svscan tini catatonit direnv asdf
    mise rtx pyenv rbenv doit luigi airflow celery gunicorn uvicorn flask django-admin manage rails rspec coverage
    pylint restic borg duplicity sshfs fusermount cryptsetup lvm mke2fs debugfs resize2fs tune2fs hdparm wg fuser xkill
    networkctl resolvectl bootctl coredumpctl xdotool xte ydotool wmctrl xclip xsel wl-copy lp lpr cupsfilter enscript
    a2ps msmtp exim exim4 swaks buildah skopeo kaniko multipass sops vault bw 2to3 idle g-ir-scanner javac infocmp mono
    dotnet es rc posh sash lksh rview jekyll vitest nx turbo lerna electron codium cursor claude codex gemini aider
    goose ollama llm
"""
_EDITORS = """
    vi vim nvim view vimdiff rvim ex ed red emacs emacsclient nano pico rnano joe jed mcedit mc micro hx helix kak
    code less more most man info pg lesspipe bat batcat delta git-delta w3m lynx links elinks visudo vipw vigr
    sensible-editor sensible-pager select-editor editor pager vimtutor zless zmore bzless bzmore xzless xzmore lzless
    lzmore zstdless
"""
_BUILDERS = """
    make gmake bmake nmake cmake ctest ninja samu meson bazel buck2 scons waf gradle gradlew mvn mvnw ant sbt lein
    rake just task invoke fab tox nox pytest gcc g++ cc c++ cpp clang clang++ tcc as gold lld mold ar ranlib objcopy
    strip install libtool autoconf automake autoreconf m4 yacc bison flex lex protoc tsc webpack vite esbuild rollup
    grunt gulp jest mocha eslint prettier black ruff mypy pre-commit ansible ansible-playbook terraform tofu pulumi
    packer chef puppet salt tex latex pdftex pdflatex xetex xelatex luatex lualatex tectonic pandoc gs ghostscript
    convert magick mogrify ffmpeg ffplay sox dot inkscape gimp blender ctags cscope pip pipx uv uvx poetry pdm hatch
    conda mamba npm npx pnpm pnpx yarn yarnpkg bunx corepack nvm fnm volta gem bundle bundler composer apt apt-get
    aptitude dpkg dpkg-deb rpm yum dnf zypper pacman yay apk emerge xbps-install brew port pkg opkg snapcraft
"""
_WRITERS = """
    git hg svn svnadmin cvs bzr fossil darcs jj gh glab tar bsdtar gtar star cpio pax zip unzip 7z 7za 7zr rar unrar
    unar gzip gunzip bzip2 bunzip2 xz unxz lzma zstd unzstd lz4 compress uncompress shar tee dd ddrescue cp mv rm ln
    link unlink truncate fallocate install chmod chown chgrp chattr setfacl setfattr mkfifo mknod mktemp mount
    umount losetup mkfs fsck fdisk parted shred wipe split csplit patch ed sort gsort ptx rename mmv sdiff rcs ci co
    openssl gpg gpg2 age ssh-keygen ssh-add ssh-agent keytool security pass op base32hex xmllint xsltproc yq dasel
    jo sponge vipe crudini augtool uuencode uudecode iptables nft ufw firewall-cmd sysctl modprobe insmod rmmod
    useradd usermod userdel passwd chpasswd groupadd hostnamectl timedatectl localectl update-alternatives ldconfig
    gzexe bzexe znew zforce ptar ptargrep gpgtar splain luac tic captoinfo infotocap uconv zic wall write
    reboot shutdown halt poweroff kill pkill killall ss localedef garra openclaw clawdbot
"""
NEVER: Final = frozenset(" ".join((_SHELLS, _INTERPRETERS, _WRAPPERS, _EDITORS, _BUILDERS, _WRITERS)).split())
"""What can run something, or write anywhere."""

MANY: Final = frozenset({"busybox", "toybox", "coreutils"})
"""One file that is many programs: the name it is called by says which."""

_BUILTINS = """
    . : alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown enable
    eval exec exit export fc fg getopts hash help history jobs let local logout mapfile popd pushd read readarray
    readonly return set shift shopt source suspend times trap type typeset ulimit umask unalias unset wait
"""
BUILTINS: Final = frozenset(_BUILTINS.split())
"""What only the shell itself can do."""

_VERSION: Final = re.compile(r"[-_.]?v?\d[\d.]*[a-z]?$")
_BETWEEN: Final = re.compile(r"[-.]")
_ENDING: Final = re.compile(r"\.(?:exe|com|cmd|bat|ps1|sh|py|pl|rb|js)$")


def can_do_anything(*names: str) -> bool:
    """Whether any of a program's names (as called, as found, as it really is called) is of such a program.

    Versions, targets and endings do not matter: `python3.11`, `x86_64-linux-gnu-gcc-12`, `node.exe`.
    """
    return any(_known(name) for name in names)


@lru_cache(1024)
def _known(name: str) -> bool:
    name = _ENDING.sub("", name.rpartition("/")[2].casefold())
    plain = _VERSION.sub("", name)
    pieces = _BETWEEN.split(plain)
    return not NEVER.isdisjoint({name, plain, pieces[0], pieces[-1], *(_VERSION.sub("", piece) for piece in pieces)})


@frozen
class Profile:
    """Which arguments leave a program a filter: it reads its input, writes its output, and touches nothing else.

    `flags` stand alone, `values` take what follows; both are written as they are given (`-n`, `--lines`). Numbers as
    flags (`-5`) are `counts`. `most` and `least` are how many further arguments there are, `paths` whether values and
    arguments may look like one.
    """

    flags: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    most: int = 0
    least: int = 0
    counts: bool = False
    paths: bool = True
    needs: frozenset[str] = frozenset()


def _profile(flags: str, values: str, most: int = 0, *, counts: bool = False, needs: str = "") -> Profile:
    split = frozenset
    return Profile(split(flags.split()), split(values.split()), most, counts=counts, needs=split(needs.split()))


PROFILES: Final[Mapping[str, Profile]] = {
    "cut": _profile(
        "-n -s -z --complement --only-delimited --zero-terminated",
        "-b -c -d -f --bytes --characters --delimiter --fields --output-delimiter",
    ),
    "uniq": _profile(
        "-c -d -D -i -u -z --count --repeated --ignore-case --unique --zero-terminated",
        "-f -s -w --skip-fields --skip-chars --check-chars",
    ),
    "head": _profile("-q -v -z --quiet --silent --verbose --zero-terminated", "-n -c --lines --bytes", counts=True),
    "tail": _profile("-q -v -z --quiet --silent --verbose --zero-terminated", "-n -c --lines --bytes", counts=True),
    "tr": _profile("-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1", "", 2),
    "wc": _profile("-c -m -l -L -w --bytes --chars --lines --max-line-length --words", ""),
    "grep": _profile(
        "-E -F -G -P -i -v -w -x -c -o -q -s -n -h -H -a -z --extended-regexp --fixed-strings --basic-regexp "
        "--perl-regexp --ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp --count "
        "--only-matching --quiet --silent --no-messages --line-number --no-filename --text --null-data --line-buffered",
        "-e --regexp -m --max-count -A -B -C --after-context --before-context --context",
        needs="-e --regexp",
    ),
    "sort": _profile(
        "-b -d -f -g -i -M -h -n -R -r -V -c -C -s -u -z --ignore-leading-blanks --dictionary-order --ignore-case "
        "--general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort "
        "--reverse --version-sort --stable --unique --zero-terminated",
        "-k -t --key --field-separator",
    ),
}
"""The filters whose arguments are known."""
USUAL: Final = ("cut", "uniq", "head", "tail", "tr", "wc")
"""Which of them are let through where nothing else is said."""
TRUSTED: Final = ("/bin", "/usr/bin")
"""Where a filter must lie."""


def custom(settings: Mapping[str, Any]) -> Profile:
    """A profile of the owner's (`minPositional`, `maxPositional`, `allowedValueFlags`, `allowedFlags`, `deniedFlags`):
    what it does not allow is refused, and nothing may look like a path.
    """
    denied = frozenset(settings.get("deniedFlags") or ())
    return Profile(
        frozenset(settings.get("allowedFlags") or ()) - denied,
        frozenset(settings.get("allowedValueFlags") or ()) - denied,
        int(settings.get("maxPositional") or 0),
        int(settings.get("minPositional") or 0),
        paths=False,
    )


def fault(profile: Profile, arguments: Sequence[str]) -> str:
    """Why these arguments are not those of a filter; empty when they are."""
    seen: set[str] = set()
    positional: list[str] = []
    waiting = ""
    rest = False
    for argument in arguments:
        if waiting:
            if wrong := _value(profile, argument):
                return wrong
            waiting = ""
        elif rest or not argument.startswith("-") or argument == "-":
            positional.append(argument)
        elif argument == "--":
            rest = True
        else:
            name, waiting, wrong = _flag(profile, argument)
            if wrong:
                return wrong
            seen.update(name)
    if waiting:
        return f"{waiting} lacks its value"
    return _positional(profile, positional) or _needed(profile, seen)


def _flag(profile: Profile, argument: str) -> tuple[set[str], str, str]:
    """The flags in one argument, the one that takes the next argument as its value, and what is wrong."""
    if argument.startswith("--"):
        name, given, value = argument.partition("=")
        if name in profile.values:
            return {name}, "" if given else name, _value(profile, value)
        return {name}, "", "" if name in profile.flags and not given else f"{name} is not among its known flags"
    if profile.counts and argument[1:].isdecimal() and argument.isascii():
        return {argument}, "", ""
    seen: set[str] = set()
    for at, letter in enumerate(argument[1:], 2):
        name = f"-{letter}"
        seen.add(name)
        if name in profile.values:
            value = argument[at:]
            return seen, "" if value else name, _value(profile, value)
        if name not in profile.flags:
            return seen, "", f"{name} is not among its known flags"
    return seen, "", ""


def _value(profile: Profile, value: str) -> str:
    return "" if profile.paths or not _pathlike(value) else f"{value[:60]!r} looks like a path"


def _pathlike(text: str) -> bool:
    return "/" in text or "\\" in text or text.startswith((".", "~")) or text == "-"


def _positional(profile: Profile, given: Sequence[str]) -> str:
    if len(given) > profile.most:
        return f"{given[profile.most][:60]!r} is one argument more than a filter has"
    if len(given) < profile.least:
        return f"it needs {profile.least} arguments"
    return next((wrong for value in given if (wrong := _value(profile, value))), "")


def _needed(profile: Profile, seen: set[str]) -> str:
    return f"it needs {' or '.join(sorted(profile.needs))}" if profile.needs and not profile.needs & seen else ""


@frozen
class Guard:
    """What a program must not be given although it is allowed: letters of short flags, long flags, and how many
    further arguments it may have (None: any number).
    """

    letters: str = ""
    flags: tuple[str, ...] = ()
    most: int | None = None


GUARDED: Final[Mapping[str, Guard]] = {
    "rg": Guard("z", ("--pre", "--pre-glob", "--hostname-bin", "--search-zip")),
    "ag": Guard("z", ("--pager", "--search-zip")),
    "ack": Guard("", ("--pager", "--output")),
    "uniq": Guard(most=1),
    "tree": Guard("oR", ("--output",)),
    "shuf": Guard("o", ("--output", "--random-source")),
    "iconv": Guard("o", ("--output",)),
    "xxd": Guard("r", ("-revert", "--revert"), most=1),
    "file": Guard("CmM", ("--compile", "--magic-file")),
    "date": Guard("s", ("--set",)),
    "hostname": Guard("Fb", ("--file", "--boot"), most=0),
    "dig": Guard("fk"),
    "jq": Guard("Lf", ("--from-file", "--library-path", "--rawfile", "--slurpfile", "--argfile")),
    "diff": Guard("", ("--to-file", "--from-file")),
    "lsof": Guard("D"),
    "ss": Guard("D", ("--diag", "--kill")),
    "dmesg": Guard("cC", ("--clear", "--read-clear", "--console-off", "--console-level")),
    "apropos": Guard("C", ("--config-file",)),
    "whatis": Guard("C", ("--config-file",)),
}
"""Programs that are harmless but for an option or two: those ask."""


def guarded(names: Sequence[str], arguments: Sequence[str]) -> str:
    """Why these arguments of a program, by any of its names, are more than reading; empty where they are not.

    A long flag may be cut short, a short one may stand among others: whatever could mean the flag counts as it.
    """
    for name in names:
        guard = GUARDED.get(name.rpartition("/")[2])
        if guard is not None and (wrong := _beyond(guard, arguments)):
            return wrong
    return ""


def _beyond(guard: Guard, arguments: Sequence[str]) -> str:
    plain = 0
    rest = False
    for argument in arguments:
        if rest or not argument.startswith("-") or argument == "-":
            plain += 1
        elif argument == "--":
            rest = True
        elif wrong := _means(guard, argument):
            return wrong
    return f"it has more than {guard.most} plain arguments" if guard.most is not None and plain > guard.most else ""


def _means(guard: Guard, argument: str) -> str:
    name = argument.partition("=")[0]
    long = next((flag for flag in guard.flags if flag.startswith(name) and len(name) > 2), "")
    short = "" if argument.startswith("--") else next((char for char in argument[1:] if char in guard.letters), "")
    return f"{long or f'-{short}'} makes it more than a reader" if long or short else ""
