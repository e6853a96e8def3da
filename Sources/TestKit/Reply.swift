import NighCore

/// No reply came in time.
package struct NoReply: Error {}

/// Returns the value that `call` passes to its handler, on whatever thread that is. Waits for it up to 40 s.
package func waitForReply<Value: Sendable>(
    _ call: (@escaping @Sendable (Value) -> Void) -> Void
) throws -> Value {
    let monitor = Monitor()
    let reply = Guarded<Value?>(nil)
    call { value in monitor.change { reply.withLock { $0 = value } } }
    _ = monitor.wait(within: .seconds(40)) { reply.withLock { $0 != nil } }
    guard let value = reply.withLock({ $0 }) else { throw NoReply() }
    return value
}

extension EventLoop {
    /// Runs `body` on the loop, and returns its result. On the loop, it runs `body` at once.
    @discardableResult
    package func call<Value: Sendable>(_ body: @escaping @Sendable () -> Value) -> Value {
        if isCurrent { return body() }
        do {
            return try waitForReply { reply in execute { reply(body()) } }
        } catch {
            preconditionFailure("the loop is blocked")
        }
    }
}
