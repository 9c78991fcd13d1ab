# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium over its debugging pipe: one page, real clicks and keys, no port, no library."""
import atexit
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ('chromium', 'chromium-browser', 'google-chrome-stable', 'chromium-headless-shell')


def find():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """Messages are JSON, each with a zero byte at its end, on descriptors 3 (to it) and 4 (from it)."""

    def __init__(self, width=1280, height=800):
        # Short, since it makes a socket far below and such a path has 108 bytes.
        self.directory = tempfile.mkdtemp(prefix='b-')
        atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
        to_child, self.to_browser = os.pipe()
        self.from_browser, from_child = os.pipe()
        # Parked above 4, so that neither overwrites the other on the way to its place.
        high = [os.dup2(fd, 50 + i) for i, fd in enumerate((to_child, from_child))]

        def places():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [find(), '--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking',
             '--disable-component-update', '--disable-sync', '--no-first-run', '--remote-debugging-pipe',
             '--hide-scrollbars', f'--window-size={width},{height}', f'--user-data-dir={self.directory}'],
            preexec_fn=places, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, 'TMPDIR': self.directory})  # it leaves things there
        for fd in high + [to_child, from_child]:
            os.close(fd)
        self.buffer = b''
        self.number = 0
        self.complaints = []
        self.requests = []
        self.session = None
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(domain + '.enable')
        self.resize(width, height)

    def resize(self, width, height, mobile=False):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def read(self, deadline):
        while b'\0' not in self.buffer:
            if not select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError('the browser does not answer')
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                raise RuntimeError('the browser has ended')
            self.buffer += piece
        message, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(message)

    def note(self, message):
        method, params = message.get('method'), message.get('params', {})
        if method == 'Runtime.exceptionThrown':
            self.complaints.append(params['exceptionDetails'].get('exception', {}).get('description', str(params)))
        elif method == 'Runtime.consoleAPICalled' and params['type'] in ('error', 'warning'):
            self.complaints.append(str(params['args']))
        elif method == 'Log.entryAdded' and params['entry']['level'] in ('error', 'warning'):
            self.complaints.append(params['entry']['text'])
        elif method == 'Network.requestWillBeSent':
            self.requests.append(params['request']['url'][:200])

    def call(self, method, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b'\0')
        deadline = time.monotonic() + 60
        while True:
            answer = self.read(deadline)
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]}')
                return answer['result']
            self.note(answer)

    def js(self, expression):
        answer = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in answer:
            raise RuntimeError(f'{expression}: {answer["exceptionDetails"]}')
        return answer['result'].get('value')

    def open(self, path, fragment=''):
        self.call('Page.navigate', url='about:blank')
        self.requests.clear()
        self.call('Page.navigate', url=f'file://{path}{fragment}')
        deadline = time.monotonic() + 60
        while not self.js('document.documentElement && document.documentElement.dataset.ready'):
            if time.monotonic() > deadline or self.complaints:
                raise RuntimeError(f'{path}: the script did not finish: {self.complaints}')
            time.sleep(0.02)

    def mouse(self, kind, x, y, buttons=0):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, button='left' if buttons or kind == 'mouseReleased' else 'none',
                  buttons=buttons, clickCount=1)

    def click(self, x, y):
        self.mouse('mouseMoved', x, y)
        self.mouse('mousePressed', x, y, 1)
        self.mouse('mouseReleased', x, y)

    def drag(self, x0, y0, x1, y1, steps=4):
        self.mouse('mouseMoved', x0, y0)
        self.mouse('mousePressed', x0, y0, 1)
        for i in range(1, steps + 1):
            self.mouse('mouseMoved', x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps, 1)
        self.mouse('mouseReleased', x1, y1)

    def click_on(self, selector):
        box = self.js(f'(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: "nearest"}}); '
                      'const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()')
        self.click(*box)

    def key(self, key, shift=False):
        text = '\r' if key == 'Enter' else key if len(key) == 1 else ''
        common = {'key': key, 'modifiers': 8 if shift else 0, 'windowsVirtualKeyCode': {'Tab': 9, 'Enter': 13}.get(key, 0)}
        self.call('Input.dispatchKeyEvent', type='keyDown', text=text, **common)
        self.call('Input.dispatchKeyEvent', type='keyUp', **common)

    def screenshot(self, path):
        with open(path, 'wb') as out:
            out.write(base64.b64decode(self.call('Page.captureScreenshot', format='png')['data']))

    def print(self, path):
        with open(path, 'wb') as out:
            out.write(base64.b64decode(self.call('Page.printToPDF', preferCSSPageSize=True)['data']))

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.directory, ignore_errors=True)
