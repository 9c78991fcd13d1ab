# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += libjudge.a
libjudge_a_SOURCES = src/judge/main.c
