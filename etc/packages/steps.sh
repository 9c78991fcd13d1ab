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

generator=/usr/lib/systemd/system-generators/perfwalk-generator
generator_link=/etc/systemd/system-generators/perfwalk-generator

# A host that was upgraded from before /lib and /usr/lib became one has a systemd that looks in /lib and /etc alone.
link_generator()
{
	[ -d /lib/systemd/system-generators ] && [ ! /lib -ef /usr/lib ] || return 0
	mkdir -p "${generator_link%/*}" && ln -sf $generator $generator_link || :
}

unlink_generator()
{
	[ "$(readlink $generator_link)" = $generator ] || return 0
	rm -f $generator_link
	rmdir "${generator_link%/*}" 2>/dev/null || :
}

# systemd runs the generator then.
reload_systemd()
{
	[ ! -d /run/systemd/system ] || systemctl daemon-reload || :
}

say_not_started()
{
	echo "perfwalk: the daemon does not run; perfwalk check says what is missing, journalctl -u perfwalk what it said" >&2
}
