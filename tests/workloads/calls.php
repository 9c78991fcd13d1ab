<?php
// Chains of calls that are known: chain_main, chain_turn, one of the chains between, and a leaf, which calls a C
// function of its own. For PHP 7.4 and later.
// calls.php once: prints each chain as PHP itself sees it. calls.php parked: waits in a chain that goes through all,
// and prints it with its lines.
declare(strict_types=1);

$bytes = str_repeat("perfwalk ", 3000);
$numbers = range(1, 400);
shuffle($numbers);
$once = ($argv[1] ?? '') === 'once';

function chain_sha() { global $bytes; return chain_see(sha1($bytes)); }
function chain_md5() { global $bytes; return chain_see(md5($bytes)); }
function chain_sort() { global $numbers; $copy = $numbers; sort($copy); return chain_see($copy); }
function chain_match() { global $bytes; return chain_see(preg_match('/(p.*k )+x/', substr($bytes, 0, 500))); }
function chain_loop()
{
	$sum = 0;
	for ($i = 0; $i < 1500; $i++) {
		$sum += $i % 7;
	}
	return chain_see($sum);
}

// What PHP says of the chain that it is in, once.
function chain_see($result)
{
	global $once;
	if ($once) {
		$names = [];
		foreach (debug_backtrace() as $frame) {
			$names[] = isset($frame['class']) ? "$frame[class]::$frame[function]" : $frame['function'];
		}
		echo implode(' ', array_reverse(array_slice($names, 1))), "\n";
	}
	return $result;
}

function chain_outer($leaf) { return chain_middle($leaf) + 1; }
function chain_middle($leaf) { return chain_inner($leaf) + 1; }
function chain_inner($leaf) { $leaf(); return 1; }

function chain_deep($leaf, $n = 20)
{
	return $n ? chain_deep($leaf, $n - 1) + 1 : (int)($leaf() === null);
}

function chain_callback($leaf) { return array_map('chain_called', [$leaf]); }
function chain_called($leaf) { return $leaf(); }

function chain_consume($leaf)
{
	foreach (chain_generate($leaf) as $ignored) {
	}
}

function chain_generate($leaf)
{
	yield 1;
	yield $leaf();
}

function chain_delegate($leaf)
{
	foreach (chain_between($leaf) as $ignored) {
	}
}

function chain_between($leaf) { yield from chain_lower($leaf); }
function chain_lower($leaf) { yield from chain_lowest($leaf); }
function chain_lowest($leaf) { yield $leaf(); }

function chain_order($leaf)
{
	$values = [2, 1];
	usort($values, function ($a, $b) use ($leaf) { return chain_compare($leaf, $a, $b); });
}

function chain_compare($leaf, $a, $b) { $leaf(); return $a <=> $b; }

class Shape
{
	private $leaf;
	public function __construct($leaf) { $this->leaf = $leaf; }
	public function chain_area() { return self::chain_static($this->leaf); }
	public static function chain_static($leaf) { return (static function () use ($leaf) { return $leaf(); })(); }
	public function __call($name, $arguments) { return $this->chain_magic(); }
	private function chain_magic() { return ($this->leaf)(); }
}

function chain_shape($leaf) { return (new Shape($leaf))->chain_area(); }
function chain_call($leaf) { return (new Shape($leaf))->nothing(1, 2); }

function chain_catch($leaf)
{
	try {
		chain_raise($leaf);
	} catch (Exception $e) {
		return chain_handle($leaf);
	}
}

function chain_raise($leaf)
{
	try {
		throw new Exception('chain');
	} finally {
		$leaf();
	}
}

function chain_handle($leaf) { return $leaf(); }

function chain_require($leaf) { return require __DIR__ . '/calls-required.php'; }
function chain_eval($leaf) { return eval('return chain_evaluated($leaf);'); }
function chain_evaluated($leaf) { return $leaf(); }

// A fiber costs much more than what it does here, so that there are few.
function chain_fiber($leaf)
{
	static $n = 0;
	global $once;
	if ($n++ % 16 && !$once) {
		return;
	}
	$fiber = new Fiber('chain_in_fiber');
	$fiber->start($leaf);
	return $fiber->resume();
}

function chain_in_fiber($leaf)
{
	chain_see(null);
	Fiber::suspend();
	return chain_fibrous($leaf);
}

function chain_fibrous($leaf) { return $leaf(); }

function chain_turn($between, $leaf)
{
	$between === '' ? $leaf() : $between($leaf);
}

// Innermost first: functions, and the lines that they are at; 0: it is written in C.
function chain_park()
{
	$line = __LINE__ + 5;
	foreach (debug_backtrace() as $frame) {
		echo isset($frame['class']) ? "$frame[class]::" : '', "$frame[function] $line\n";
		$line = $frame['line'] ?? 0;
	}
	echo "{main} $line\n"; sleep(1000);
}

function chain_through($between)
{
	$leaf = 'chain_park';
	foreach ($between as $b) {
		$leaf = $b === '' ? $leaf : function () use ($b, $leaf) { return $b($leaf); };
	}
	$leaf();
}

function chain_main($mode)
{
	global $once;
	$between = ['', 'chain_outer', 'chain_deep', 'chain_callback', 'chain_consume', 'chain_delegate', 'chain_order', 'chain_shape',
		'chain_call', 'chain_catch', 'chain_require', 'chain_eval'];
	if (class_exists('Fiber')) {
		$between[] = 'chain_fiber';
	}
	if ($mode === 'parked') {
		chain_through($between);
	}
	do {
		foreach ($between as $b) {
			foreach (['chain_sha', 'chain_md5', 'chain_sort', 'chain_match', 'chain_loop'] as $leaf) {
				chain_turn($b, $leaf);
			}
		}
	} while (!$once);
}

chain_main($argv[1] ?? '');
