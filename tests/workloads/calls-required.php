<?php
// For calls.php: code of a file, with $leaf.
function_exists('chain_of_file') || eval('function chain_of_file($leaf) { return $leaf(); }');
return chain_of_file($leaf);
