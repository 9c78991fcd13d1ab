/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The judge (src/judge/), between the process that starts it and itself: it gets one MESSAGE_SETUP
 * (a struct setup_common) with the file, answers with one byte, and exits.
 */
#define JUDGING_NAME	    "judge"
#define JUDGING_CPU_SECONDS 1 /* RLIMIT_CPU; real files take milliseconds */

enum { JUDGING_NO = 'n', JUDGING_YES = 'y' };
