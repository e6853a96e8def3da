"""Chromium, by the Chrome DevTools protocol: https://chromedevtools.github.io/devtools-protocol/"""
import asyncio

from commands import Browser, Failure, PageError


class Chromium(Browser):
    environment = {}

    # The keys that are no characters, with the numbers that Windows has for them.
    keys = {
        "Backspace": 8, "Tab": 9, "Enter": 13, "Escape": 27, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36,
        "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Delete": 46,
        "Shift": 16, "Control": 17, "Alt": 18, "Meta": 91,
    }
    modifiers = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}

    @staticmethod
    def arguments(profile, names):
        return [
            "/usr/bin/chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            f"--user-data-dir={profile}", "--remote-debugging-port=0", "--no-first-run", "--no-proxy-server",
            "--host-resolver-rules=" + ",".join(f"MAP {name} 127.0.0.1" for name in names),
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
            "--disable-breakpad", "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
            "--disable-features=HttpsUpgrades,Translate,MediaRouter", "--password-store=basic", "--mute-audio",
            "about:blank",
        ]

    async def prepare(self):
        self.page = asyncio.get_running_loop().create_future()
        self.loaded = asyncio.Event()
        await self.connect()
        await self.call("Target.setDiscoverTargets", discover=True)
        session = await self.call("Target.attachToTarget", targetId=await self.page, flatten=True)
        self.route = {"sessionId": session["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        return (await self.call("Browser.getVersion"))["product"].replace("Chrome/", "Chromium ")

    def handle(self, method, event):
        match method:
            case "Target.targetCreated":
                if event["targetInfo"]["type"] == "page" and not self.page.done():
                    self.page.set_result(event["targetInfo"]["targetId"])
            case "Page.loadEventFired":
                self.loaded.set()
            case "Page.javascriptDialogOpening":
                asyncio.ensure_future(self.call("Page.handleJavaScriptDialog", accept=True))
            case "Runtime.exceptionThrown":
                self.problems.append(self.text(event["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                if event["type"] in ("error", "assert"):
                    words = [str(value.get("value", value.get("description"))) for value in event["args"]]
                    self.problems.append(" ".join(words))
            case "Log.entryAdded":
                if (entry := event["entry"])["level"] == "error":
                    self.problems.append(f"{entry['text']} {entry.get('url', '')}")
            case "Inspector.targetCrashed":
                self.problems.append("the page's process crashed")
            case "Browser.downloadWillBegin":
                self.file = f"{self.download_folder}/{event['suggestedFilename']}"
            case "Browser.downloadProgress":
                if event["state"] == "completed":
                    self.downloaded_files.put_nowait(event.get("filePath") or self.file)

    @staticmethod
    def text(details):
        return details.get("exception", {}).get("description") or details["text"]

    async def evaluate(self, expression, **options):
        result = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, **options)
        if details := result.get("exceptionDetails"):
            raise PageError(self.text(details))
        return result["result"]

    async def run(self, expression):
        return (await self.evaluate(expression, returnByValue=True)).get("value")

    async def do_open(self, url):
        self.loaded.clear()
        result = await self.call("Page.navigate", url=url)
        if error := result.get("errorText"):
            raise Failure(f"{url}: {error}")
        # There is no loader if only the fragment of the address has changed.
        if "loaderId" in result:
            await self.loaded.wait()

    async def do_reload(self):
        self.loaded.clear()
        await self.call("Page.reload")
        await self.loaded.wait()

    async def do_viewport(self, width, height, scale=1, phone=False):
        """Sets the size in CSS pixels, and how many pixels of the screen each is wide. A phone has a touch screen, and
        heeds <meta name="viewport">."""
        self.is_phone = phone
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone)
        await self.call("Emulation.setTouchEmulationEnabled", enabled=phone)
        # The page learns of it a little later. Its visual viewport leaves out scroll bars, and a phone may zoom out.
        sizes = "[innerWidth, Math.round(visualViewport.width * visualViewport.scale)]"
        await self.do_wait(f"{sizes}.includes({width})", seconds=30)

    async def do_scheme(self, scheme):
        """Sets what the page finds in `prefers-color-scheme`: "light" or "dark"."""
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        await self.wait_for_media(f"prefers-color-scheme: {scheme}")

    async def do_screenshot(self, path):
        """Writes a PNG of the viewport."""
        self.write_image(path, await self.call("Page.captureScreenshot", format="png"))

    async def do_offline(self, offline):
        """Takes the network away from the page, or gives it back. An open WebSocket stays open."""
        await self.call(
            "Network.emulateNetworkConditions", offline=offline, latency=0, downloadThroughput=-1,
            uploadThroughput=-1)

    async def do_downloads(self, folder):
        """Has downloads written to a folder."""
        self.download_folder = folder
        await self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder, eventsEnabled=True)

    async def choose(self, element, files):
        found = await self.evaluate(element)
        await self.call("DOM.setFileInputFiles", objectId=found["objectId"], files=files)

    async def press(self, names):
        *held, key = names
        modifiers = sum(self.modifiers[name] for name in held)
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        for name in held:
            await self.move_key("rawKeyDown", name, modifiers)
        # A key that is held with Control writes nothing.
        if text and set(held) <= {"Shift"}:
            await self.move_key("keyDown", key, modifiers, text=text)
        else:
            await self.move_key("rawKeyDown", key, modifiers)
        for name in reversed(names):
            await self.move_key("keyUp", name, modifiers)

    async def move_key(self, kind, name, modifiers, **text):
        code, number = name, self.keys.get(name, 0)
        if name in self.modifiers:
            code = f"{name}Left"
        elif name == " ":
            code, number = "Space", 32
        elif len(name) == 1:
            is_code = name.isascii() and name.isalnum()
            code = ("Digit" if name.isdigit() else "Key") + name.upper() if is_code else ""
            number = ord(name.upper()) if is_code else 0
        await self.call(
            "Input.dispatchKeyEvent", type=kind, key=name, code=code, modifiers=modifiers,
            windowsVirtualKeyCode=number, **text)

    async def tap(self, x, y):
        if self.is_phone:
            await self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
            await self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        else:
            for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
                await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
