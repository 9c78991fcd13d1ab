# The default config, as the program prints it (a unit test compares), and its manual page.
perfwalkconfdir = $(sysconfdir)/perfwalk
perfwalkconf_DATA = etc/perfwalk.conf
dist_man_MANS += etc/perfwalk.conf.5
EXTRA_DIST += etc/perfwalk.conf
