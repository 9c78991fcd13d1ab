noinst_LIBRARIES += librender.a
librender_a_SOURCES = \
	src/render/aggregate.c src/render/aggregate.h \
	src/render/amount.c src/render/amount.h \
	src/render/by-thread.c src/render/by-thread.h \
	src/render/calltree.c src/render/calltree.h \
	src/render/choose.c \
	src/render/window.c \
	src/render/diff.c \
	src/render/firefox.c \
	src/render/first-frame.c src/render/first-frame.h \
	src/render/folded.c \
	src/render/format.c src/render/format.h \
	src/render/frame.c src/render/frame.h \
	src/render/gzip.c src/render/gzip.h \
	src/render/html.c \
	src/render/html-data.c src/render/html-data.h \
	src/render/kept-memory.c src/render/kept-memory.h \
	src/render/ndjson.c \
	src/render/otlp.c src/render/otlp-internal.h \
	src/render/otlp-frames.c \
	src/render/otlp-order.c \
	src/render/otlp-json.c \
	src/render/otlp-resource.c \
	src/render/otlp-samples.c src/render/otlp-samples.h \
	src/render/perf-script.c \
	src/render/places.c src/render/places.h \
	src/render/pprof.c \
	src/render/pprof-types.c src/render/pprof-types.h \
	src/render/render.h \
	src/render/report.c src/render/report-internal.h \
	src/render/report-keys.c \
	src/render/report-tree.c \
	src/render/residents.c src/render/residents.h \
	src/render/speedscope.c \
	src/render/summary.c \
	src/render/summary-memory.c src/render/summary-memory.h \
	src/render/summary-page.c src/render/summary-page.h \
	src/render/summary-shares.c src/render/summary-shares.h \
	src/render/summary-waits.c src/render/summary-waits.h \
	src/render/svg.c \
	src/render/table.c src/render/table.h \
	src/render/waits.c src/render/waits.h

# The page's sources as C strings.
render_page = src/render/page-css.h src/render/page-html.h src/render/page-js.h
render_page_sources = \
	src/render/page/flamegraph.css \
	src/render/page/flamegraph.html \
	$(render_page_scripts)
# One script, in this order: what a part uses at once comes before it.
render_page_scripts = \
	src/render/page/data.js \
	src/render/page/views.js \
	src/render/page/native.js \
	src/render/page/sums.js \
	src/render/page/confidence.js \
	src/render/page/state.js \
	src/render/page/colours.js \
	src/render/page/graph.js \
	src/render/page/heatmap.js \
	src/render/page/memory.js \
	src/render/page/tables.js \
	src/render/page/header.js \
	src/render/page/main.js
nodist_librender_a_SOURCES = $(render_page)
src/render/page-js.h: $(render_page_scripts) src/render/page/embed.awk
	$(AM_V_GEN)$(MKDIR_P) src/render && \
	(cd $(srcdir) && $(AWK) -v name=page_js -f src/render/page/embed.awk $(render_page_scripts)) >$@.tmp && \
	mv -f $@.tmp $@
src/render/page-%.h: $(srcdir)/src/render/page/flamegraph.% $(srcdir)/src/render/page/embed.awk
	$(AM_V_GEN)$(MKDIR_P) src/render && \
	$(AWK) -v name=page_$* -f $(srcdir)/src/render/page/embed.awk $(srcdir)/src/render/page/flamegraph.$* >$@.tmp && \
	mv -f $@.tmp $@
BUILT_SOURCES += $(render_page)
CLEANFILES += $(render_page)
EXTRA_DIST += $(render_page_sources) src/render/page/embed.awk tests/system/flamegraph-page.sh \
	tests/system/flamegraph-page.py tests/system/browser.py tests/bench/page.py

render_synthetic = tests/unit/synthetic.c tests/unit/synthetic.h tests/unit/test.h
render_libs = librender.a libprofile.a libproto.a libproto-gen.a libutil.a $(PROTOBUF_C_LIBS) $(ZLIB_LIBS) $(NETTLE_LIBS)

check_PROGRAMS += tests/unit/test-render-text
tests_unit_test_render_text_SOURCES = tests/unit/test-render-text.c $(render_synthetic)
tests_unit_test_render_text_LDADD = $(render_libs)

check_PROGRAMS += tests/unit/test-waits
tests_unit_test_waits_SOURCES = tests/unit/test-waits.c tests/unit/test.h tests/unit/waits-model.h
tests_unit_test_waits_LDADD = $(render_libs)

check_PROGRAMS += tests/unit/test-render-otlp
tests_unit_test_render_otlp_SOURCES = tests/unit/test-render-otlp.c $(render_synthetic)
tests_unit_test_render_otlp_LDADD = $(render_libs)

check_PROGRAMS += tests/unit/test-render-json
tests_unit_test_render_json_SOURCES = tests/unit/test-render-json.c $(render_synthetic)
tests_unit_test_render_json_LDADD = $(render_libs)

check_PROGRAMS += tests/unit/test-render-pprof
tests_unit_test_render_pprof_SOURCES = tests/unit/test-render-pprof.c $(render_synthetic)
tests_unit_test_render_pprof_LDADD = $(render_libs)

check_PROGRAMS += tests/unit/test-render-html
tests_unit_test_render_html_SOURCES = tests/unit/test-render-html.c $(render_synthetic)
tests_unit_test_render_html_LDADD = $(render_libs)

check_PROGRAMS += tests/unit/test-render-oom
tests_unit_test_render_oom_SOURCES = tests/unit/test-render-oom.c $(render_synthetic)
tests_unit_test_render_oom_LDADD = $(render_libs)
tests_unit_test_render_oom_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

TESTS += tests/system/flamegraph-page.sh
