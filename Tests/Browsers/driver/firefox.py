"""Firefox, by WebDriver BiDi: https://w3c.github.io/webdriver-bidi/"""
import json

from commands import Browser, PageError


class Firefox(Browser):
    environment = {"MOZ_CRASHREPORTER_DISABLE": "1"}

    # The keys that are no characters, as WebDriver has them.
    keys = {
        "Backspace": "\ue003", "Tab": "\ue004", "Enter": "\ue006", "Escape": "\ue00c", "PageUp": "\ue00e",
        "PageDown": "\ue00f", "End": "\ue010", "Home": "\ue011", "ArrowLeft": "\ue012", "ArrowUp": "\ue013",
        "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Delete": "\ue017",
        "Shift": "\ue008", "Control": "\ue009", "Alt": "\ue00a", "Meta": "\ue03d",
    }

    @staticmethod
    def arguments(profile, names):
        preferences = {
            "network.dns.localDomains": ",".join(names), "network.proxy.type": 0, "dom.security.https_first": False,
            "dom.w3c_touch_events.enabled": 1,
        }
        with open(f"{profile}/user.js", "w", encoding="utf-8") as file:
            for name, value in preferences.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        # The access is for set_preference.
        return [
            "/usr/bin/firefox-esr", "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0",
            "--remote-allow-system-access", "about:blank",
        ]

    async def prepare(self):
        await self.connect("/session")
        # A dialog such as that of alert() is accepted at once.
        session = await self.call(
            "session.new", capabilities={"alwaysMatch": {"unhandledPromptBehavior": {"default": "accept"}}})
        self.page = await self.top_context()
        await self.call(
            "session.subscribe", events=[
                "log.entryAdded", "network.responseCompleted", "network.fetchError", "browsingContext.downloadEnd",
            ])
        return f"Firefox {session['capabilities']['browserVersion']}"

    async def top_context(self, **options):
        return (await self.call("browsingContext.getTree", **options))["contexts"][0]["context"]

    def handle(self, method, event):
        match method:
            case "log.entryAdded":
                if event["level"] == "error":
                    self.problems.append(event["text"])
            case "network.responseCompleted":
                if (response := event["response"])["status"] >= 400:
                    self.problems.append(f"status {response['status']}: {response['url']}")
            case "network.fetchError":
                self.problems.append(f"{event['errorText']}: {event['request']['url']}")
            case "browsingContext.downloadEnd":
                if event["status"] == "complete":
                    self.downloaded_files.put_nowait(event["filepath"])

    async def evaluate(self, expression, context=None):
        result = await self.call(
            "script.evaluate", expression=expression, awaitPromise=True, target={"context": context or self.page})
        if details := result.get("exceptionDetails"):
            raise PageError(details["text"])
        return result["result"]

    async def run(self, expression):
        return (await self.evaluate(expression)).get("value")

    async def do_open(self, url):
        await self.call("browsingContext.navigate", context=self.page, url=url, wait="complete")

    async def do_reload(self):
        await self.call("browsingContext.reload", context=self.page, wait="complete")

    async def do_viewport(self, width, height, scale=1, phone=False):
        self.is_phone = phone
        await self.call(
            "browsingContext.setViewport", context=self.page, devicePixelRatio=scale,
            viewport={"width": width, "height": height})
        # A finger is coarse (1) and a mouse is fine (2) and hovers (4).
        for name in ("ui.primaryPointerCapabilities", "ui.allPointerCapabilities"):
            await self.set_preference(name, 1 if phone else 6)
        await self.wait_for_media(f"pointer: {'coarse' if phone else 'fine'}")

    async def do_scheme(self, scheme):
        await self.set_preference(
            "layout.css.prefers-color-scheme.content-override", {"dark": 0, "light": 1}[scheme])
        await self.wait_for_media(f"prefers-color-scheme: {scheme}")

    async def set_preference(self, name, value):
        # BiDi has no command for this, but the scripts of Firefox's own window may do it.
        await self.evaluate(
            f"Services.prefs.setIntPref('{name}', {value})", await self.top_context(**{"moz:scope": "chrome"}))

    async def do_screenshot(self, path):
        self.write_image(path, await self.call("browsingContext.captureScreenshot", context=self.page))

    async def do_offline(self, offline):
        await self.call(
            "emulation.setNetworkConditions", contexts=[self.page],
            networkConditions={"type": "offline"} if offline else None)

    async def do_downloads(self, folder):
        await self.call(
            "browser.setDownloadBehavior", downloadBehavior={"type": "allowed", "destinationFolder": folder})

    async def choose(self, element, files):
        found = await self.evaluate(element)
        await self.call("input.setFiles", context=self.page, element={"sharedId": found["sharedId"]}, files=files)

    async def press(self, names):
        keys = [self.keys.get(name, name) for name in names]
        actions = [{"type": "keyDown", "value": key} for key in keys]
        actions += [{"type": "keyUp", "value": key} for key in reversed(keys)]
        await self.perform({"type": "key", "id": "keyboard", "actions": actions})

    async def tap(self, x, y):
        kind = "touch" if self.is_phone else "mouse"
        actions = [
            {"type": "pointerMove", "x": x, "y": y}, {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        await self.perform({"type": "pointer", "id": kind, "parameters": {"pointerType": kind}, "actions": actions})

    async def perform(self, actions):
        await self.call("input.performActions", context=self.page, actions=[actions])
