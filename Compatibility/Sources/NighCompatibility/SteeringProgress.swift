import Foundation
import Synchronization

/// A progress by which a program steers a transfer. Its handlers are called before `cancel()`, `pause()` and `resume()`
/// return. Foundation calls those that it has on the threads of `DispatchQueue.global()`, where they would wait for
/// programs that block these threads; and a program may replace them by its own.
///
/// `@unchecked Sendable`: that of its superclass, and a lock for its own state.
package final class SteeringProgress: Progress, @unchecked Sendable {
    /// A command of the program to the transfer.
    package enum Command: Sendable { case cancel, pause, resume }

    private let handler = Mutex<(@Sendable (Command) -> Void)?>(nil)

    /// Sets the handler of commands; nil removes it. A parent may have been cancelled before.
    package func steer(_ handler: (@Sendable (Command) -> Void)?) {
        self.handler.withLock { $0 = handler }
        if isCancelled { handler?(.cancel) }
    }

    package override func cancel() {
        super.cancel()
        give(.cancel)
    }

    package override func pause() {
        super.pause()
        give(.pause)
    }

    package override func resume() {
        super.resume()
        give(.resume)
    }

    private func give(_ command: Command) { handler.withLock { $0 }?(command) }
}
