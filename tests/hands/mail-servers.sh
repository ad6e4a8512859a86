#!/usr/bin/env bash
# Installs Debian's Dovecot, Cyrus and OpenSMTPD for tests, where they are missing, and starts none of them.
set -euo pipefail

cyrus=/opt/cyrus-imapd
present() {
    [ -x /usr/sbin/dovecot ] && [ -x /usr/lib/cyrus/bin/httpd ] && [ -x /usr/sbin/smtpd ] && [ -x /usr/sbin/saslpasswd2 ] &&
        { [ -x /usr/lib/cyrus/bin/imapd ] || [ -x "$cyrus/usr/lib/cyrus/bin/imapd" ]; }
}
if present; then exit; fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "these tests need Dovecot, Cyrus and OpenSMTPD, which only root can install with apt-get" >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
# What a package would start is refused for as long as it is installed.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends dovecot-imapd cyrus-common cyrus-caldav opensmtpd sasl2-bin libsasl2-modules
# The package of its imapd and Dovecot's exclude each other.
scratch=$(mktemp -d)
(cd "$scratch" && apt-get download -qq cyrus-imapd && dpkg -x cyrus-imapd_*.deb "$cyrus")
rm -rf "$scratch"
present
