#!/bin/sh
# Installs musterd for systemd from this checkout, or upgrades it: run it again after a `git pull`.
# Each run makes a virtual environment of its own under PREFIX/releases and then turns PREFIX/bin to
# it; a daemon that runs keeps the one it was started from. What you have configured stays.
set -eu

prefix=/opt/musterd
python=
units=/etc/systemd/system
settings=/etc/musterd
kept=3 # releases, the present one included

usage() {
    cat <<'END'
usage: deploy/install.sh [--prefix DIR] [--python PROGRAM]

  --prefix DIR      where it goes (/opt/musterd)
  --python PROGRAM  Python 3.11 or newer; the newest on PATH if left out

pip's own variables (PIP_INDEX_URL, PIP_NO_INDEX, PIP_FIND_LINKS) are obeyed.
END
}

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
        --prefix) [ $# -gt 1 ] || fail "--prefix needs a folder"; prefix=${2%/}; shift 2 ;;
        --python) [ $# -gt 1 ] || fail "--python needs a program"; python=$2; shift 2 ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
done
case $prefix in
    /*[!A-Za-z0-9/._-]* | [!/]* | '') fail "--prefix $prefix: wanted is an absolute path of plain letters" ;;
esac
checkout=$(cd "$(dirname "$0")/.." && pwd)

find_python() {
    for each in ${python:-python3.14 python3.13 python3.12 python3.11 python3}; do
        if "$each" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$each"
            return
        fi
    done
    fail "${python:-no program on PATH} is Python 3.11 or newer with venv (Debian: apt-get install python3-venv)"
}

releases() { # their numbers, the newest first
    for each in "$prefix"/releases/*/; do
        each=${each%/} each=${each##*/}
        case $each in *[!0-9]*) ;; *) echo "$each" ;; esac
    done | sort -rn
}

make_release() {
    interpreter=$(find_python)
    last=$(releases | head -n 1)
    release=$prefix/releases/$((${last:-0} + 1))
    mkdir -p "$prefix/releases"
    trap 'rm -rf "$release"' EXIT
    trap 'exit 1' HUP INT TERM
    echo "making $release with $("$interpreter" --version)"
    "$interpreter" -m venv "$release"
    pip="$release/bin/python -m pip --disable-pip-version-check -qq"
    $pip install --require-hashes -r "$checkout/requirements/run.txt"
    $pip install --no-index --no-deps --no-build-isolation "$checkout"
    "$release/bin/musterd" version
    ln -sfn "releases/${release##*/}/bin" "$prefix/bin.new"
    mv -fT "$prefix/bin.new" "$prefix/bin"
    trap - EXIT
}

remove_old_releases() {
    releases | tail -n "+$((kept + 1))" | while read -r old; do
        rm -rf "$prefix/releases/$old"
    done
}

install_units() {
    mkdir -p "$units"
    for unit in musterd.service musterd@.service musterd-instances.service; do
        sed "s,/opt/musterd/,$prefix/,g" "$checkout/deploy/systemd/$unit" >"$units/$unit.new"
        chmod 644 "$units/$unit.new"
        mv -f "$units/$unit.new" "$units/$unit"
    done
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload
    fi
}

install_settings() {
    [ -d "$settings" ] || mkdir -m 755 "$settings"
    [ ! -e "$settings/musterd.toml" ] || return 0
    cat >"$settings/musterd.toml" <<'END'
# Settings that differ from the defaults: `musterd config show` prints all of them, docs/configuration.md
# says what they do.

# [store]
# url_file = "musterd.store-url"   # PostgreSQL: the URL stands in /etc/credstore/musterd.store-url

# [workers]
# max_count = 8
END
}

next_steps() {
    cat <<END
installed. Next:
  edit $settings/musterd.toml, then $prefix/bin/musterd config check
  systemctl enable --now musterd
  systemctl status musterd
It ran already? The new release takes over with: systemctl restart musterd
END
}

umask 022
if [ "$(id -u)" -ne 0 ]; then
    fail "must be run as root: it writes to $prefix, $settings and $units"
fi
make_release
remove_old_releases
install_units
install_settings
next_steps
