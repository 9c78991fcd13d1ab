#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh tree|deb|rpm NAME VERSION RELEASE PROCESSOR: what `make deb rpm` makes in the build directory. tree completes
# packages/tree, which bundle-tree.sh made for the prefix /usr, and makes packages/debug with the debugging information
# of packages/perfwalk. deb and rpm make two packages each of them: with what ./description says, with ./steps.sh in
# their scripts, by dpkg-deb and by rpmbuild. Equal sources and libraries make equal packages, wherever they are built.
# What old hosts cannot unpack is not used: the payload is xz's, whose level is $PACKAGE_XZ. $MAINTAINER, "NAME
# <ADDRESS>", takes the place of the one in ./description.
set -eu

umask 022
what=$1 name=$2 version=$3 release=$4 processor=$5
here=$(cd "$(dirname "$0")" && pwd)
etc=$(dirname "$here")
level=${PACKAGE_XZ:-6}
doc=usr/share/doc/$name
SOURCE_DATE_EPOCH=$(sh "$etc/source-date.sh" "$etc/..")
export SOURCE_DATE_EPOCH
export LC_ALL=C

described() # NAME: its value, or the lines below it
{
	sed -n "/^$1:/,/^[A-Z]/{s/^$1: *//p; s/^ //p;}" "$here/description" | sed '/./!d'
}

maintainer=${MAINTAINER:-$(described Maintainer)}

build_id() { readelf -n "packages/$name" | sed -n 's/.*Build ID: *//p'; }

# with_steps SCRIPT: with what all scripts share in place of its mark
with_steps() { sed -e "/^#STEPS#/{r $here/steps.sh" -e 'd;}' "$1"; }

# All of it as old as the sources.
settle() # DIRECTORY
{
	find "$1" -depth -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
}

complete_tree()
{
	tree=packages/tree debug=packages/debug
	rm -rf "$debug"
	rmdir -p --ignore-fail-on-non-empty "$tree/var/lib/$name" "$tree/var/cache/$name"
	install -Dm644 packages/perfwalk.service -t "$tree/usr/lib/systemd/system"
	install -Dm755 packages/perfwalk-generator -t "$tree/usr/lib/systemd/system-generators"
	install -Dm644 "$etc/perfwalk.tmpfiles" "$tree/usr/lib/tmpfiles.d/$name.conf"
	install -d "$tree/etc/$name/$name.conf.d"
	install -Dm644 "$here/copyright" -t "$tree/$doc"
	gzip -9nc "$etc/../NEWS" >"$tree/$doc/changelog.gz"
	find "$tree/usr/share/man" -type f ! -name '*.gz' -exec gzip -9n {} +
	settle "$tree"
	id=$(build_id)
	file=$debug/usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug
	mkdir -p "${file%/*}"
	${OBJCOPY:-objcopy} --only-keep-debug --compress-debug-sections "packages/$name" "$file"
	chmod 644 "$file"
	settle "$debug"
}

# ---- Debian's ----

control() # PACKAGE SECTION DIRECTORY
{
	cat <<-END
		Package: $1
		Source: $name
		Version: $version-$release
		Architecture: $architecture
		Maintainer: $maintainer
		Installed-Size: $(find "$3" -type f -printf '%s\n' | awk '{ n += int(($1 + 1023) / 1024) } END { print n + 0 }')
		Section: $2
	END
}

# pack_deb ROOT PACKAGE: with the sums of its files
pack_deb()
{
	(cd "$1" && find usr -type f | sort | xargs md5sum) >"$1/DEBIAN/md5sums"
	settle "$1"
	dpkg-deb --root-owner-group -Zxz -z"$level" --build "$1" "$2_$version-${release}_$architecture.deb" >/dev/null
}

deb()
{
	architecture=$processor
	case $processor in
	x86_64) architecture=amd64 ;;
	aarch64) architecture=arm64 ;;
	esac
	root=$work/$name
	cp -a packages/tree "$root"
	mkdir "$root/DEBIAN"
	{
		control "$name" utils packages/tree
		echo "Priority: optional"
		echo "Description: $(described Summary)"
		described Description | sed 's/^/ /'
	} >"$root/DEBIAN/control"
	printf '/etc/%s/%s.conf\n' "$name" "$name" >"$root/DEBIAN/conffiles"
	for script in postinst prerm postrm; do
		with_steps "$here/deb/$script" >"$root/DEBIAN/$script"
		chmod 755 "$root/DEBIAN/$script"
	done
	printf '%s (%s-%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' "$name" "$version" "$release" \
		"$maintainer" "$(date -uRd "@$SOURCE_DATE_EPOCH")" | gzip -9nc >"$root/$doc/changelog.Debian.gz"
	install -Dm644 "$here/lintian-overrides" "$root/usr/share/lintian/overrides/$name"
	pack_deb "$root" "$name"

	root=$work/$name-dbgsym
	cp -a packages/debug "$root"
	mkdir -p "$root/DEBIAN" "$root/usr/share/doc"
	ln -s "$name" "$root/usr/share/doc/$name-dbgsym"
	{
		control "$name-dbgsym" debug packages/debug
		echo "Priority: optional"
		echo "Depends: $name (= $version-$release)"
		echo "Auto-Built-Package: debug-symbols"
		echo "Build-Ids: $(build_id)"
		echo "Description: debug symbols for $name"
	} >"$root/DEBIAN/control"
	pack_deb "$root" "$name-dbgsym"
	echo "$name""_$version-${release}_$architecture.deb: install it with: apt install ./$name""_$version-${release}_$architecture.deb"
}

# ---- RPM ----

# What the package has, as %files names it. Directories of the host's own are not its.
file_list()
{
	(cd packages/tree && find . -mindepth 1 -printf '%y %P\n') | sort -k2 | while read -r type path; do
		case "$type $path" in
		"f etc/$name/$name.conf") echo "%config(noreplace) /$path" ;;
		"d etc/$name"* | "d usr/lib/$name" | "d usr/share/$name"* | "d $doc"*) echo "%dir /$path" ;;
		d*) ;;
		"f $doc/"*) echo "%doc /$path" ;;
		*) echo "/$path" ;;
		esac
	done
}

spec()
{
	cat <<-END
		Name: $name
		Version: $version
		Release: $release
		Summary: $(described Summary | sed 's/^./\U&/')
		License: $(described Licence)
		Packager: $maintainer
		Group: System/Monitoring
		AutoReqProv: no
		%description
		$(described Description | sed 's/^\.$//')
		%package debuginfo
		Summary: Debug information for $name
		Group: Development/Debug
		AutoReqProv: no
		Requires: $name = $version-$release
		%description debuginfo
		The debugging information of $name's program, found by its build id.
		%install
		cp -a $(pwd)/packages/tree/. %{buildroot}/
		cp -a $(pwd)/packages/debug/. %{buildroot}/
		%files
		%defattr(-,root,root)
		$(file_list)
		%files debuginfo
		%defattr(-,root,root)
		/usr/lib/debug/.build-id/*
		%changelog
		* $(date -ud "@$SOURCE_DATE_EPOCH" '+%a %b %d %Y') $maintainer - $version-$release
		- See changelog.gz.
	END
	for script in post preun postun; do
		echo "%$script"
		with_steps "$here/rpm/$script"
	done
}

# The libraries are as they come, and the host's rpm does nothing to them. Sums and payload are what RHEL 7 knows too.
rpm_package()
{
	spec >"$work/$name.spec"
	rpmbuild -bb --quiet --target "$processor-linux" --define "_topdir $work" --define "_rpmdir $work" --define '_rpmfilename %%{NAME}.rpm' \
		--define '__os_install_post %{nil}' --define 'debug_package %{nil}' --define '_build_id_links none' \
		--define "_binary_payload w$level.xzdio" --define '_binary_filedigest_algorithm 8' \
		--define '_buildhost localhost' --define 'use_source_date_epoch_as_buildtime 1' \
		--define 'clamp_mtime_to_source_date_epoch 1' --define '_unpackaged_files_terminate_build 1' \
		"$work/$name.spec" >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		exit 1
	}
	for package in "$name" "$name-debuginfo"; do
		mv "$work/$package.rpm" "$package-$version-$release.$processor.rpm"
	done
	echo "$name-$version-$release.$processor.rpm: install it with: dnf install ./$name-$version-$release.$processor.rpm"
}

need() # COMMAND PACKAGE
{
	command -v "$1" >/dev/null 2>&1 || {
		echo "make $what: $1 is not installed; on Debian: apt-get install $2" >&2
		exit 1
	}
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
case $what in
tree) complete_tree ;;
deb) need dpkg-deb dpkg && deb ;;
rpm) need rpmbuild rpm && rpm_package ;;
esac
