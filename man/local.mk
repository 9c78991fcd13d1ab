dist_man_MANS += \
	man/perfwalk-check.1 \
	man/perfwalk-completion.1 \
	man/perfwalk-convert.1 \
	man/perfwalk-ctl.1 \
	man/perfwalk-debug.1 \
	man/perfwalk-diff.1 \
	man/perfwalk-list.1 \
	man/perfwalk-record.1 \
	man/perfwalk-report.1 \
	man/perfwalk-run.1 \
	man/perfwalk-top.1 \
	man/perfwalk.1 \
	man/perfwalk.conf.5
