# SPDX-License-Identifier: Apache-2.0
# With a configured Makefile: each test program, its sources, and the directories of the libraries that it
# links. For tests/select.sh.
variable = $(subst -,_,$(subst /,_,$(subst .,_,$(1:$(EXEEXT)=))))
libraries = $(filter lib%.a,$($(call variable,$(1))_LDADD))
directories = $(sort $(foreach l,$(call libraries,$(1)),$(dir $($(call variable,$(l))_SOURCES))))

links:
	@:$(foreach t,$(check_PROGRAMS),$(info $(t:$(EXEEXT)=) $($(call variable,$(t))_SOURCES) $(call directories,$(t))))
.PHONY: links
