"""What is the same in all browsers: the connection, and the commands that JavaScript can carry out."""
import asyncio
import base64
import json
import os
import re

import websockets

from patience import within

# A promise that is fulfilled when the expression holds or after so many milliseconds, with whether it holds.
WAIT = """new Promise((done) => {
    const limit = performance.now() + %d;
    let hasEnded = false;
    const check = () => {
        if (hasEnded) return;
        let holds = false;
        try { holds = Boolean(\n%s\n); } catch { }
        hasEnded = holds || performance.now() > limit;
        if (!hasEnded) return;
        observer.disconnect();
        done(holds);
    };
    const observer = new MutationObserver(check);
    observer.observe(document, { attributes: true, characterData: true, childList: true, subtree: true });
    const checkFrames = () => { check(); if (!hasEnded) requestAnimationFrame(checkFrames); };
    checkFrames();
})"""

# The element that a selector matches.
ELEMENT = """((selector) => {
    const element = document.querySelector(selector);
    if (!element) throw new Error(`no element matches ${selector}`);
    return element;
})(%s)"""

# The middle of an element, after it has been scrolled into view and has stood still for two frames.
MIDDLE = """(async (element) => {
    let x, y, last;
    do {
        last = `${x} ${y}`;
        element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        const box = element.getBoundingClientRect();
        [x, y] = [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)];
    } while (`${x} ${y}` !== last);
    const there = document.elementFromPoint(x, y);
    if (!element.contains(there)) throw new Error(`in its place is ${there?.outerHTML ?? "nothing"}`);
    return [x, y];
})(%s)"""

PAGE = "`${location.href} shows: ${document.body?.innerText.slice(0, 600)}`"


class Failure(Exception):
    """A command that did not succeed."""


class PageError(Failure):
    """An exception from a script in the page."""

    def __init__(self, text):
        # Places in the scripts of this file help nobody.
        super().__init__(re.sub(r"\n    at (async )?<anonymous>.*", "", text))


class Browser:
    """A browser with one page, and the connection to it: calls with numbers, their results, and events.

    A subclass is a protocol. It has `prepare`, `handle`, `run`, `press`, `tap`, `choose` and the commands that are not
    here.
    """

    def __init__(self, process):
        self.process = process
        self.calls = {}
        self.call_count = 0
        # What is added to each call.
        self.route = {}
        self.problems = []
        self.downloaded_files = asyncio.Queue()
        self.is_phone = False

    async def connect(self, path=""):
        self.socket = await websockets.connect(
            await self.process.address() + path, max_size=None, compression=None, ping_interval=None,
            open_timeout=None)
        self.receiving = asyncio.ensure_future(self.receive())

    async def receive(self):
        try:
            async for text in self.socket:
                message = json.loads(text)
                if "id" not in message:
                    self.handle(message["method"], message["params"])
                elif not (call := self.calls.pop(message["id"])).done():
                    call.set_result(message)
        except websockets.ConnectionClosed:
            pass
        finally:
            for call in self.calls.values():
                if not call.done():
                    call.set_exception(self.ending())

    def ending(self):
        return Failure(f"the browser has ended: {self.process.output}")

    async def call(self, method, **parameters):
        self.call_count += 1
        number, call = self.call_count, asyncio.get_running_loop().create_future()
        self.calls[number] = call
        try:
            await self.socket.send(json.dumps({"id": number, "method": method, "params": parameters, **self.route}))
        except websockets.ConnectionClosed:
            raise self.ending() from None
        message = await call
        if error := message.get("error"):
            raise Failure(f"{method}: {message.get('message') or error['message']}")
        return message["result"]

    async def do_evaluate(self, expression):
        """Evaluates an expression, awaits its value if that is a promise, and returns it as JSON."""
        text = await self.run(f"(async () => JSON.stringify(await (\n{expression}\n)))()")
        return None if text is None else json.loads(text)

    async def do_wait(self, expression, seconds):
        """Waits until an expression holds. An exception counts as false. Meanwhile the page may be loaded again."""
        async def wait():
            while True:
                try:
                    return await self.run(WAIT % (seconds * 8_000, expression))
                except PageError:
                    raise
                except Failure:
                    # One document has gone, and the next one cannot be asked yet.
                    await asyncio.sleep(0.05)
        try:
            if await within(seconds, wait()):
                return
        except TimeoutError:
            pass
        page = await self.do_evaluate(PAGE)
        raise Failure(f"not within {seconds} s: {expression}\n{page}\nproblems: {self.problems}")

    async def wait_for_media(self, query):
        """Waits until a media query holds: a page learns of a change a little later."""
        await self.do_wait(f"matchMedia('({query})').matches", seconds=30)

    async def do_problems(self):
        """Returns the problems since the last call: exceptions that nothing caught, errors on the console, what the
        Content-Security-Policy blocked, and what could not be loaded."""
        # A problem that the page has just had comes before the result of this.
        await self.run("new Promise((done) => setTimeout(done))")
        problems, self.problems = self.problems, []
        return problems

    async def do_press(self, keys):
        """Presses keys one after the other. A key is a character, or a name such as "Enter" or "Control+Enter"."""
        for key in keys:
            names = re.split(r"\+(?=.)", key)
            for name in names:
                if len(name) > 1 and name not in self.keys:
                    raise Failure(f"no key is named {name}")
            await self.press(names)

    async def do_tap(self, selector):
        """Taps the middle of an element: with a finger if the viewport is a phone's, otherwise with a mouse."""
        await self.tap(*await self.do_evaluate(MIDDLE % ELEMENT % json.dumps(selector)))

    async def do_choose(self, selector, files):
        """Chooses files in an <input type="file">."""
        for file in files:
            if not os.path.isfile(file):
                raise Failure(f"{file} is no file")
        await self.choose(ELEMENT % json.dumps(selector), [os.path.abspath(file) for file in files])

    async def do_download(self, selector):
        """Taps a link, waits until its download is complete, and returns the path of the file.

        A page that moves the link in between does not get the tap. So it taps again after a while, as a person would."""
        while True:
            await self.do_tap(selector)
            try:
                return await asyncio.wait_for(self.downloaded_files.get(), 15)
            except TimeoutError:
                pass

    @staticmethod
    def write_image(path, result):
        with open(path, "wb") as file:
            file.write(base64.b64decode(result["data"]))
