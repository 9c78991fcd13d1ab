# The default config, as the program prints it (a unit test compares).
configfile = $(sysconfdir)/perfwalk/perfwalk.conf
EXTRA_DIST += etc/bundle.sh etc/bundle-tree.sh etc/sbom.py etc/source-date.sh etc/loader.sh etc/perfwalk.conf etc/quickstart.sh LICENSE

systemdunit_DATA = etc/perfwalk.service
etc/perfwalk.service: $(srcdir)/etc/perfwalk.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) etc && sed -e 's|@bindir[@]|$(bindir)|g' -e 's|@localstatedir[@]|$(localstatedir)|g' \
		-e 's|@pkgdatadir[@]|$(pkgdatadir)|g' \
		$(srcdir)/etc/perfwalk.service.in > $@.tmp && mv $@.tmp $@
CLEANFILES += etc/perfwalk.service

# For the administrator to put beside the unit.
dropindir = $(pkgdatadir)/perfwalk.service.d
dist_dropin_DATA = etc/old-kernel.conf etc/rootless.conf

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

EXTRA_DIST += etc/perfwalk.service.in etc/perfwalk.sysusers ARCHITECTURE.md CONTRIBUTING.md tests/bench/host.py
EXTRA_DIST += docs/SECURITY.md docs/daemon.md docs/figures.md docs/flamegraph.png docs/hosts.md docs/install.md docs/reliability.md docs/troubleshooting.md

# What goes to others: the sources, the bundle with the list of its parts (SPDX), and the sums of all three.
.PHONY: archives
archives: dist bundle
	sha256sum $(distdir).tar.xz $(PACKAGE)-bundle-$(VERSION)-$(host_cpu).tar.xz \
		$(PACKAGE)-bundle-$(VERSION)-$(host_cpu).spdx.json >SHA256SUMS.tmp && mv SHA256SUMS.tmp SHA256SUMS
	@echo "$$(pwd): $$(wc -l <SHA256SUMS) files, and their sums in SHA256SUMS"
CLEANFILES += SHA256SUMS
