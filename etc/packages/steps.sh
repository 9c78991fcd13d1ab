# SPDX-License-Identifier: Apache-2.0
# What the scripts of both families share. Each step says what did not work and goes on: a package that stops half-way
# is worse than a daemon that says what it lacks.

make_users()
{
	if command -v systemd-sysusers >/dev/null 2>&1 && systemd-sysusers perfwalk.conf; then
		return
	fi
	for user in perfwalk perfwalk-net; do
		id -u $user >/dev/null 2>&1 ||
			useradd --system --user-group --no-create-home --home-dir / --shell /bin/false $user ||
			echo "perfwalk: the user $user could not be made; make it with: useradd --system $user" >&2
	done
}

make_directories()
{
	if command -v systemd-tmpfiles >/dev/null 2>&1 && systemd-tmpfiles --create perfwalk.conf; then
		return
	fi
	mkdir -p -m 755 /var/lib/perfwalk /var/cache/perfwalk || :
}

drop_in=/etc/systemd/system/perfwalk.service.d/old-kernel.conf
drop_in_source=/usr/share/perfwalk/perfwalk.service.d/old-kernel.conf

remove_drop_in()
{
	[ "$(readlink $drop_in)" != $drop_in_source ] || rm -f $drop_in
	rmdir "${drop_in%/*}" 2>/dev/null || :
}

# older FOUND WANTED: numbers with dots
older() { [ "$1" != "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# Linux before 5.8 needs it, and systemd before 247, which does not know CAP_PERFMON. An administrator's own file of that name stays.
choose_drop_in()
{
	[ -d /run/systemd/system ] || return 0
	kernel=$(uname -r | sed 's/[^0-9.].*//')
	manager=$(systemctl --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
	if older "$kernel" 5.8 || older "$manager" 247; then
		[ -e $drop_in ] || { mkdir -p "${drop_in%/*}" && ln -s $drop_in_source $drop_in; }
	else
		remove_drop_in
	fi
}

reload_systemd()
{
	[ ! -d /run/systemd/system ] || systemctl daemon-reload || :
}
