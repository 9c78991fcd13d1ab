# SPDX-License-Identifier: Apache-2.0
#
# Writes text files as one C string: awk -v name=NAME -f embed.awk FILE... One literal for each line,
# so that no literal is longer than a line and the result can be read.
BEGIN {
	printf "/* Made from the page's sources; change those. */\n"
	printf "static const char %s[] =\n", name
}
{
	gsub(/["\\]/, "\\\\&")
	printf "\t\"%s\\n\"\n", $0
}
END {
	printf "\t\"\";\n"
}
