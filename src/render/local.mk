noinst_LIBRARIES += librender.a
librender_a_SOURCES = \
	src/render/aggregate.c src/render/aggregate.h \
	src/render/calltree.c src/render/calltree.h \
	src/render/folded.c \
	src/render/frame.c src/render/frame.h \
	src/render/otlp.c src/render/otlp-internal.h \
	src/render/otlp-frames.c \
	src/render/otlp-resource.c \
	src/render/pprof.c \
	src/render/render.h \
	src/render/summary.c

render_synthetic = tests/unit/synthetic.c tests/unit/synthetic.h tests/unit/test.h
render_libs = librender.a libprofile.a libproto.a libproto-gen.a libutil.a $(PROTOBUF_C_LIBS) $(ZLIB_LIBS)

check_PROGRAMS += tests/unit/test-render-text
tests_unit_test_render_text_SOURCES = tests/unit/test-render-text.c $(render_synthetic)
tests_unit_test_render_text_LDADD = $(render_libs)

check_PROGRAMS += tests/unit/test-render-otlp
tests_unit_test_render_otlp_SOURCES = tests/unit/test-render-otlp.c $(render_synthetic)
tests_unit_test_render_otlp_LDADD = $(render_libs)

check_PROGRAMS += tests/unit/test-render-pprof
tests_unit_test_render_pprof_SOURCES = tests/unit/test-render-pprof.c $(render_synthetic)
tests_unit_test_render_pprof_LDADD = $(render_libs)
