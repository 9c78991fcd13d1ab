noinst_LIBRARIES += libcmd.a
libcmd_a_SOURCES = \
	src/cmd/allocations.c src/cmd/allocations.h \
	src/cmd/check.c src/cmd/check.h src/cmd/check-rights.c src/cmd/check-say.c \
	src/cmd/cmd.h \
	src/cmd/completion.c \
	src/cmd/container-options.c src/cmd/container-options.h \
	src/cmd/ctl.c \
	src/cmd/ctl-status.c src/cmd/ctl-status.h \
	src/cmd/debug.c \
	src/cmd/debug-runtime.c src/cmd/debug-runtime.h \
	src/cmd/exit-code.c \
	src/cmd/list.c \
	src/cmd/notify.c src/cmd/notify.h \
	src/cmd/options.c src/cmd/options.h \
	src/cmd/off-cpu-events.c src/cmd/off-cpu-events.h \
	src/cmd/outputs.c src/cmd/outputs.h \
	src/cmd/profile-types.c src/cmd/profile-types.h \
	src/cmd/record-events.c \
	src/cmd/record-options.c \
	src/cmd/record-say.c \
	src/cmd/record.c src/cmd/record.h \
	src/cmd/run-events.c src/cmd/run-events.h \
	src/cmd/run.c \
	src/cmd/running.c src/cmd/running.h \
	src/cmd/services.c src/cmd/services.h \
	src/cmd/session.c src/cmd/session.h \
	src/cmd/top.c \
	src/cmd/uprobes.c src/cmd/uprobes.h \
	src/cmd/windows.c src/cmd/windows.h \
	src/cmd/view-perf-data.c src/cmd/view-perf-data.h \
	src/cmd/view-options.c \
	src/cmd/view.c src/cmd/view.h

bin_PROGRAMS = perfwalk
perfwalk_SOURCES = src/cmd/main.c
# In layer order: what is above needs what is below.
perfwalk_LDADD = \
	libcmd.a libmetrics.a libbroker.a libreader.a libprofiler.a libsymbolizer.a libexporter.a libfetcher.a libscreen.a \
	libconfig.a libopener.a libjudge.a libstore.a libhttp.a libimport.a librender.a libperf-data.a \
	libprocess.a libhost.a libsample.a libprofile.a libsymbolize.a libunwind.a libruntimes.a libproto.a \
	libproto-gen.a libutil.a \
	$(ELFUTILS_LIBS) $(PROTOBUF_C_LIBS) $(INIH_LIBS) $(SYMBOLIZE_LIBS) $(NCURSES_LIBS) -ldl

# make bundle: an archive with every library that perfwalk needs, for hosts whose own are older or
# missing (etc/bundle.sh). The same objects, linked to be started by the C library of the bundle;
# DT_RPATH, not DT_RUNPATH, because it also counts for the libraries' own libraries.
bundlelibdir = $(libdir)/perfwalk
EXTRA_PROGRAMS += bundle/perfwalk
CLEANFILES += bundle/perfwalk$(EXEEXT) $(PACKAGE)-bundle-$(VERSION)-$(host_cpu).tar.xz $(PACKAGE)-bundle-$(VERSION)-$(host_cpu).spdx.json
bundle_perfwalk_SOURCES = $(perfwalk_SOURCES)
bundle_perfwalk_LDADD = $(perfwalk_LDADD)
EXTRA_bundle_perfwalk_DEPENDENCIES = perfwalk$(EXEEXT)
bundle_perfwalk_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--dynamic-linker=$(bundlelibdir)/`$(SHELL) $(srcdir)/etc/loader.sh perfwalk$(EXEEXT) | sed 's:.*/::'` \
	-Wl,-rpath,$(bundlelibdir) -Wl,--disable-new-dtags
# The same for the packages, where these have it (etc/local.mk).
EXTRA_PROGRAMS += packages/perfwalk
CLEANFILES += packages/perfwalk$(EXEEXT)
packages_perfwalk_SOURCES = $(perfwalk_SOURCES)
packages_perfwalk_LDADD = $(perfwalk_LDADD)
EXTRA_packages_perfwalk_DEPENDENCIES = perfwalk$(EXEEXT)
packages_perfwalk_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--dynamic-linker=/usr/lib/perfwalk/`$(SHELL) $(srcdir)/etc/loader.sh perfwalk$(EXEEXT) | sed 's:.*/::'` \
	-Wl,-rpath,/usr/lib/perfwalk -Wl,--disable-new-dtags
.PHONY: bundle
bundle: all bundle/perfwalk$(EXEEXT)
	MAKE="$(MAKE)" VERSION=$(VERSION) LIBIBERTY="$$($(CC) -print-file-name=libiberty.a)" $(foreign) $(SHELL) $(srcdir)/etc/bundle.sh $(bindir) $(sysconfdir) $(bundlelibdir) $(docdir) \
		$(PACKAGE)-bundle-$(VERSION)-$(host_cpu).tar.xz $(LOADED_LIBRARIES)

cmd_told = tests/unit/told.h tests/unit/test.h

check_PROGRAMS += tests/unit/test-options
tests_unit_test_options_SOURCES = tests/unit/test-options.c $(cmd_told)
tests_unit_test_options_LDADD = libcmd.a libutil.a

check_PROGRAMS += tests/unit/test-session
tests_unit_test_session_SOURCES = tests/unit/test-session.c tests/unit/test.h
tests_unit_test_session_LDADD = libcmd.a libutil.a

check_PROGRAMS += tests/unit/test-outputs
tests_unit_test_outputs_SOURCES = tests/unit/test-outputs.c $(cmd_told)
tests_unit_test_outputs_LDADD = libcmd.a $(render_libs) libproto.a

check_PROGRAMS += tests/unit/test-view-options
tests_unit_test_view_options_SOURCES = tests/unit/test-view-options.c $(cmd_told)
tests_unit_test_view_options_LDADD = $(perfwalk_LDADD)

check_PROGRAMS += tests/unit/test-uprobes
tests_unit_test_uprobes_SOURCES = tests/unit/test-uprobes.c tests/unit/probe-target.h tests/unit/test.h
tests_unit_test_uprobes_LDADD = $(perfwalk_LDADD)
