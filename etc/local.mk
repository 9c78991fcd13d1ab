# The default config, as the program prints it (a unit test compares).
configfile = $(sysconfdir)/perfwalk/perfwalk.conf
EXTRA_DIST += etc/bundle.sh etc/bundle-tree.sh etc/sbom.py etc/source-date.sh etc/loader.sh etc/perfwalk.conf etc/quickstart.sh LICENSE

systemdunit_DATA = etc/perfwalk.service
etc/perfwalk.service packages/perfwalk.service: $(srcdir)/etc/perfwalk.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed -e 's|@bindir[@]|$(bindir)|g' -e 's|@localstatedir[@]|$(localstatedir)|g' \
		-e 's|@pkgdatadir[@]|$(pkgdatadir)|g' \
		$(srcdir)/etc/perfwalk.service.in > $@.tmp && mv $@.tmp $@
CLEANFILES += etc/perfwalk.service

# The generator puts the first two beside the unit where they are needed, the administrator the third.
dropindir = $(pkgdatadir)/perfwalk.service.d
dist_dropin_DATA = etc/old-kernel.conf etc/paranoid.conf etc/rootless.conf
systemdgenerator_SCRIPTS = etc/perfwalk-generator
etc/perfwalk-generator packages/perfwalk-generator: $(srcdir)/etc/perfwalk-generator.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed -e 's|@pkgdatadir[@]|$(pkgdatadir)|g' $(srcdir)/etc/perfwalk-generator.in > $@.tmp && \
		chmod 755 $@.tmp && mv $@.tmp $@
CLEANFILES += etc/perfwalk-generator

# What confines the daemon besides, for the administrator to load (docs/install.md).
apparmordir = $(pkgdatadir)/apparmor
dist_apparmor_DATA = etc/apparmor/perfwalk
selinuxdir = $(pkgdatadir)/selinux
dist_selinux_DATA = etc/selinux/perfwalk.fc etc/selinux/perfwalk.te

# What shells complete, as the program prints it.
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
nodist_bashcompletion_DATA = etc/completion/perfwalk
nodist_zshcompletion_DATA = etc/completion/_perfwalk
etc/completion/perfwalk: perfwalk$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) etc/completion && $(EXE_WRAPPER) ./perfwalk$(EXEEXT) completion bash >$@.tmp && mv -f $@.tmp $@
etc/completion/_perfwalk: perfwalk$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) etc/completion && $(EXE_WRAPPER) ./perfwalk$(EXEEXT) completion zsh >$@.tmp && mv -f $@.tmp $@
CLEANFILES += etc/completion/perfwalk etc/completion/_perfwalk

# What the daemon keeps: under systemd only what is there when it starts can be written.
statedirs = $(localstatedir)/lib/perfwalk $(localstatedir)/cache/perfwalk

# The config file is the administrator's: one that is there stays, and one that was changed is not taken away.
install-data-hook:
	$(MKDIR_P) $(addprefix $(DESTDIR),$(sysusersdir) $(sysconfdir)/perfwalk $(statedirs))
	test -e $(DESTDIR)$(configfile) || $(INSTALL_DATA) $(srcdir)/etc/perfwalk.conf $(DESTDIR)$(configfile)
	$(INSTALL_DATA) $(srcdir)/etc/perfwalk.sysusers $(DESTDIR)$(sysusersdir)/perfwalk.conf
uninstall-hook:
	rm -f $(DESTDIR)$(sysusersdir)/perfwalk.conf
	! cmp -s $(srcdir)/etc/perfwalk.conf $(DESTDIR)$(configfile) || rm -f $(DESTDIR)$(configfile)
	rmdir $(addprefix $(DESTDIR),$(sysconfdir)/perfwalk $(statedirs)) 2>/dev/null || :

EXTRA_DIST += etc/perfwalk.service.in etc/perfwalk-generator.in etc/perfwalk.sysusers ARCHITECTURE.md CONTRIBUTING.md tests/bench/host.py tests/bench/fleet.py \
	tests/bench/daemon.py tests/bench/shell.py
EXTRA_DIST += docs/SECURITY.md docs/containers.md docs/daemon.md docs/figures.md docs/flamegraph.png docs/hosts.md docs/fleet.md docs/install.md docs/kubernetes.md docs/reliability.md docs/tracing.md docs/troubleshooting.md

# Packages of both families, of one tree for the prefix /usr: the bundle's (etc/packages/build.sh). The program has to
# have been compiled for /etc and /var.
# The date of the sources is in the release: apt and dnf leave an installed package alone unless the other one is newer.
PACKAGE_RELEASE = 1.$(shell date -ud "@$$($(SHELL) $(srcdir)/etc/source-date.sh $(srcdir))" +%Y%m%d.%H%M%S)
# For what is built for another processor.
foreign = SYSROOT="$$($(CC) -print-sysroot 2>/dev/null | sed 's|^/$$||')" EXE_WRAPPER="$(EXE_WRAPPER)" STRIP="$(STRIP)"
package_dirs = prefix=/usr exec_prefix=/usr bindir=/usr/bin libdir=/usr/lib datarootdir=/usr/share datadir=/usr/share \
	mandir=/usr/share/man docdir=/usr/share/doc/$(PACKAGE) sysconfdir=/etc localstatedir=/var
# Who answers for these packages, "NAME <ADDRESS>": who gives them to others says so (make deb rpm MAINTAINER="...").
MAINTAINER =
package_build = MAINTAINER="$(MAINTAINER)" $(SHELL) $(srcdir)/etc/packages/build.sh
package_names = $(PACKAGE) $(VERSION) $(PACKAGE_RELEASE) $(host_cpu)
.PHONY: deb rpm package-tree
package-tree: all
	@test '$(sysconfdir) $(localstatedir)' = '/etc /var' || { \
		echo "make deb rpm: this build has its config in $(sysconfdir), its state in $(localstatedir);" \
			"configure one with --prefix=/usr" >&2; exit 1; }
	rm -rf packages/tree
	$(MAKE) -s $(package_dirs) packages/perfwalk$(EXEEXT) packages/perfwalk.service packages/perfwalk-generator
	MAKE="$(MAKE) $(package_dirs)" VERSION=$(VERSION) LIBIBERTY="$$($(CC) -print-file-name=libiberty.a)" $(foreign) \
		$(SHELL) $(srcdir)/etc/bundle-tree.sh packages/tree packages/perfwalk$(EXEEXT) /usr/bin /usr/lib/$(PACKAGE) \
		/usr/share/doc/$(PACKAGE) $(PACKAGE)-$(VERSION)-$(host_cpu).spdx.json $(LOADED_LIBRARIES)
	OBJCOPY="$(OBJCOPY)" $(package_build) tree $(package_names)
deb rpm: package-tree
	rm -f $(PACKAGE)*.$@
	$(package_build) $@ $(package_names)
clean-local:
	rm -rf packages/tree packages/debug
CLEANFILES += packages/perfwalk.service packages/perfwalk-generator $(PACKAGE)*.deb $(PACKAGE)*.rpm $(PACKAGE)-$(VERSION)-$(host_cpu).spdx.json
EXTRA_DIST += etc/perfwalk.tmpfiles etc/packages/build.sh etc/packages/copyright etc/packages/description \
	etc/packages/lintian-overrides etc/packages/rpmlint.toml etc/packages/steps.sh \
	etc/packages/deb/postinst etc/packages/deb/postrm \
	etc/packages/deb/prerm etc/packages/rpm/post etc/packages/rpm/postun etc/packages/rpm/preun

# A container image of the bundle (etc/image/Containerfile), in the store of podman, buildah or docker and as an archive.
IMAGE = localhost/$(PACKAGE):$(VERSION)
.PHONY: image
image: bundle
	$(SHELL) $(srcdir)/etc/image/build.sh $(PACKAGE)-bundle-$(VERSION)-$(host_cpu).tar.xz $(IMAGE) $(VERSION) $(host_cpu)
CLEANFILES += $(PACKAGE)-image-*.tar.gz
EXTRA_DIST += etc/image/Containerfile etc/image/Containerfile.debian etc/image/build.sh etc/image/compose.yaml etc/image/perfwalk.container etc/image/seccomp.json
EXTRA_DIST += $(addprefix etc/fleet/,alerts.yaml alerts-test.yaml clickhouse.sql dashboard.json gateway.yaml parca.yaml profiles.json \
	pyroscope.yaml)
EXTRA_DIST += etc/kubernetes/perfwalk.yaml $(addprefix etc/kubernetes/chart/,Chart.yaml values.yaml values.schema.json \
	templates/_helpers.tpl templates/configmap.yaml templates/daemonset.yaml templates/NOTES.txt)

# What goes to others: the sources, the bundle and the packages with the lists of their parts (SPDX), and the sums of
# all. SIGN=KEY signs these by gpg.
.PHONY: archives
archives: dist bundle deb rpm
	sha256sum $(distdir).tar.xz $(PACKAGE)-bundle-$(VERSION)-$(host_cpu).tar.xz \
		$(PACKAGE)-bundle-$(VERSION)-$(host_cpu).spdx.json $(PACKAGE)-$(VERSION)-$(host_cpu).spdx.json \
		$(PACKAGE)*_$(VERSION)-$(PACKAGE_RELEASE)_*.deb $(PACKAGE)*-$(VERSION)-$(PACKAGE_RELEASE).$(host_cpu).rpm \
		>SHA256SUMS.tmp && mv SHA256SUMS.tmp SHA256SUMS
	rm -f SHA256SUMS.asc
	test -z "$(SIGN)" || gpg --batch --yes --armor --local-user "$(SIGN)" --output SHA256SUMS.asc --detach-sign SHA256SUMS
	@echo "$$(pwd): $$(wc -l <SHA256SUMS) files, and their sums in SHA256SUMS$(if $(SIGN),, (not signed; SIGN=KEY signs it))"
CLEANFILES += SHA256SUMS SHA256SUMS.asc
