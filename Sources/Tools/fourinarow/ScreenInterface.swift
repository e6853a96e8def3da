import FourInARow
import Glibc
import NighLoop
import NighCore
import Terminal
import Synchronization

/// Shows the game on a terminal's screen, and takes keys and clicks.
///
/// The screen itself is a value. This class holds it, paints it, and paints it again when it changes by itself.
///
/// `@unchecked Sendable`: the screen is guarded by the lock; only the loop uses the timer.
final class ScreenInterface: UserInterface, @unchecked Sendable {
    private let style: ScreenStyle
    private let transports: [String]
    private let loop: UVEventLoop
    private let lock = Mutex(())
    private var screen: Screen?
    private var terminal: TerminalSession?
    private var isStopped = false
    private var timer: LoopTimer?
    /// Called once when the terminal is gone.
    private let onTerminalGone: @Sendable () -> Void

    init(
        _ style: ScreenStyle, over transports: [String], on loop: UVEventLoop,
        onTerminalGone: @escaping @Sendable () -> Void
    ) {
        self.style = style
        self.transports = transports
        self.loop = loop
        self.onTerminalGone = onTerminalGone
    }

    func start(_ view: LobbyView, onRequest: @escaping @Sendable (UserRequest) -> Void) throws {
        let screen = Screen(view, style: style, transports: transports, now: loop.now)
        lock.withLock { _ in self.screen = screen }
        let terminal = try TerminalSession { [weak self] in self?.handle($0, onRequest) }
        lock.withLock { _ in self.terminal = terminal }
        paint()
    }

    func show(_ view: LobbyView, _ news: LobbyNews?) { change { $0.update(view, news, now: $1) } }

    func showRefusal(_ breach: Breach) { change { $0.showRefusal(breach, now: $1) } }

    func showMessage(_ text: String) { change { $0.addNotice(text, now: $1) } }

    func showCode(_ code: GuestCode) { change { screen, _ in screen.take(code) } }

    func stop() {
        let terminal = lock.withLock { _ in
            isStopped = true
            return self.terminal
        }
        terminal?.restore()
    }

    private func handle(_ event: TerminalEvent, _ onRequest: @Sendable (UserRequest) -> Void) {
        switch event {
        case .resized: paint()
        case .gone: onTerminalGone()
        case .input(let input):
            var requests: [UserRequest] = []
            change { screen, now in
                guard let size = terminal?.size else { return }
                requests = screen.handle(input, size: size, now: now)
            }
            for request in requests {
                if request == .suspend {
                    lock.withLock { _ in terminal }?.suspend()
                } else {
                    onRequest(request)
                }
            }
        }
    }

    /// Changes the screen, and paints it.
    private func change(_ body: (inout Screen, Moment) -> Void) {
        lock.withLock { _ in
            guard var screen else { return }
            body(&screen, loop.now)
            self.screen = screen
        }
        paint()
    }

    private func paint() {
        guard let terminal = lock.withLock({ _ in isStopped ? nil : self.terminal }) else { return }
        let now = loop.now
        terminal.paint { [weak self] size in self?.canvas(size) ?? Canvas(size) }
        loop.execute { [weak self] in self?.paintLater(after: now) }
    }

    private func canvas(_ size: TerminalSize) -> Canvas {
        lock.withLock { _ in screen }?.canvas(size, now: loop.now) ?? Canvas(size)
    }

    /// Schedules the painting of the next change by itself after `moment`.
    private func paintLater(after moment: Moment) {
        if let timer { loop.cancel(timer) }
        timer = nil
        let next = lock.withLock { _ in isStopped ? nil : screen?.nextChange(after: moment) }
        guard let next else { return }
        timer = loop.schedule(at: next) { [weak self] in
            self?.timer = nil
            self?.paint()
        }
    }
}
