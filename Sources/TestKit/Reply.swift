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
    /// Runs `body` on the loop, waits, and returns its result. On the loop, it runs `body` at once. The caller does
    /// nothing meanwhile, so `body` may refer to what is not `Sendable`.
    @discardableResult
    package func call<Value>(_ body: @escaping () -> Value) -> Value {
        if isCurrent { return body() }
        nonisolated(unsafe) let body = body
        nonisolated(unsafe) var value: Value?
        do {
            try waitForReply { reply in
                execute {
                    value = body()
                    reply(())
                }
            }
        } catch {
            preconditionFailure("the loop is blocked")
        }
        guard let value else { preconditionFailure("the loop has not run the work that it has reported") }
        return value
    }
}
