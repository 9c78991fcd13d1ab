#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh BUNDLE TAG VERSION PROCESSOR: what `make image` makes in the build directory: the image TAG of the archive of
# `make bundle`, in the store of podman (or of $IMAGE_BUILDER: buildah, docker), and as an archive for `podman load` and
# `docker load`, perfwalk-image-VERSION-PROCESSOR.tar.gz. No registry is asked, and nothing of it runs: a bundle for
# another processor makes an image for that. An image is as old as the sources. The certificate authorities are this
# host's, or $IMAGE_AUTHORITIES, a file; "none": then profiles go over https only with `certificate` in the configuration.
set -eu

umask 022
bundle=$1 tag=$2 version=$3 processor=$4
name=perfwalk
here=$(cd "$(dirname "$0")" && pwd)
date=$(sh "$here/../source-date.sh" "$here/../..")
case $processor in
x86_64) platform=linux/amd64 ;;
aarch64) platform=linux/arm64 ;;
*) platform=linux/$processor ;;
esac
archive=$name-image-$version-$processor.tar.gz
place=/etc/ssl/certs/ca-certificates.crt # where perfwalk looks
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT INT TERM

builder=${IMAGE_BUILDER:-}
for candidate in podman buildah docker; do
	[ -n "$builder" ] || ! command -v $candidate >/dev/null || builder=$candidate
done
[ -n "$builder" ] || { echo "make image: podman, buildah or docker builds images, and none is installed; on Debian: apt-get install podman" >&2; exit 1; }

authorities=${IMAGE_AUTHORITIES:-}
for candidate in $place /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem; do
	[ -n "$authorities" ] || [ ! -s $candidate ] || authorities=$candidate
done
case $authorities in
none) ;;
"")
	echo "make image: this host has no certificate authorities, and without them the image sends nothing over https;" \
		"on Debian: apt-get install ca-certificates, or IMAGE_AUTHORITIES=FILE, or IMAGE_AUTHORITIES=none" >&2
	exit 1 ;;
*)
	[ -s "$authorities" ] || { echo "make image: IMAGE_AUTHORITIES: $authorities is no file with authorities" >&2; exit 1; } ;;
esac

lay_out()
{
	root=$context/root
	mkdir -p "$root/etc/$name/$name.conf.d" "$root/etc/ssl/certs" "$root/run" "$root/tmp" "$root/var/tmp" \
		"$root/var/cache/$name" "$root/var/lib/$name"
	chmod 1777 "$root/tmp" "$root/var/tmp"
	tar -xJf "$bundle" -C "$root" --exclude '*/man' --exclude '*/completions' --exclude '*/site-functions' \
		--exclude '*/systemd' --exclude '*/sysusers.d'
	cp "$(find "$root" -name "$name.conf" -path '*/doc/*')" "$root/etc/$name/"
	printf '%s\n' root:x:0:0::/:/sbin/nologin $name:x:60801:60801::/:/sbin/nologin \
		$name-net:x:60802:60802::/:/sbin/nologin >"$root/etc/passwd"
	printf '%s\n' root:x:0: $name:x:60801: $name-net:x:60802: >"$root/etc/group"
	echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
	[ "$authorities" = none ] || cp -L "$authorities" "$root$place"
	find "$root" -depth -exec touch -hd "@$date" {} +
}

build()
{
	bindir=$(cd "$root" && find . -path "*/bin/$name" | sed 's|^\.||; s|/[^/]*$||')
	sed "s|/usr/local/bin|$bindir|g" "$here/Containerfile" >"$context/Containerfile"
	case $builder in
	podman | buildah) $builder build -q --platform $platform --layers=false --format docker --timestamp "$date" \
		--build-arg VERSION="$version" -t "$tag" "$context" ;;
	*) DOCKER_BUILDKIT=1 SOURCE_DATE_EPOCH=$date $builder build -q --platform $platform -f "$context/Containerfile" \
		--build-arg VERSION="$version" -t "$tag" "$context" ;;
	esac >/dev/null
}

save()
{
	case $builder in
	buildah) buildah push -q "$tag" "docker-archive:$archive.tmp:$tag" ;;
	podman) podman save -q -o "$archive.tmp" "$tag" ;;
	*) "$builder" save -o "$archive.tmp" "$tag" ;;
	esac
	gzip -9n <"$archive.tmp" >"$archive.new"
	rm "$archive.tmp"
	mv "$archive.new" "$archive"
}

lay_out
build
rm -f "$archive.tmp"
save
echo "$archive: $(du -h "$archive" | cut -f1), and in the store of $builder as $tag"
