<?php
// A request to a worker: it works in a chain of calls that is as deep as its pid says, and tells its pid and the chain as
// PHP itself has it, outermost first.

function fork_spin()
{
	$names = array_column(debug_backtrace(), 'function');
	$until = fork_cpu() + 0.25;
	do {
		for ($i = $sum = 0; $i < 20000; $i++) {
			$sum += $i % 7;
		}
	} while (fork_cpu() < $until);
	return array_reverse($names);
}

function fork_cpu()
{
	$usage = getrusage();
	return $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec'] + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
}

function fork_deep($n) { return $n ? fork_deep($n - 1) : fork_spin(); }
function fork_work() { return fork_deep(getmypid() % 17); }

echo getmypid(), ' ', implode(' ', fork_work()), "\n";
