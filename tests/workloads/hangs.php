<?php
// SPDX-License-Identifier: Apache-2.0
// Hangs in a method that an internal function calls, in sleep() or (argument read) a read of a socket. It says in which
// functions, from the outermost on, before it does.
function tell()
{
    $chain = [];
    foreach (array_slice(debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS), 1) as $f) {
        $chain[] = isset($f['class']) ? $f['class'] . '::' . $f['function'] : $f['function'];
    }
    $chain[] = '{main}';
    echo implode(';', array_reverse($chain)), "\n";
}

class Deep
{
    function method($n)
    {
        if ($n) {
            return $this->method($n - 1);
        }
        return array_map([$this, 'call'], [0]);
    }

    function call()
    {
        tell();
        if (($GLOBALS['argv'][1] ?? '') === 'read') {
            $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
            fread($pair[0], 1);
        } else {
            sleep(1000);
        }
    }
}

function outer()
{
    (new Deep)->method(3);
}

outer();
