import NighTestKit
import NighUV

extension UVEventLoop {
    /// Runs `body` on the loop and waits for its result.
    @discardableResult
    func call<Result: Sendable>(_ monitor: Monitor, _ body: @escaping @Sendable () -> Result) -> Result {
        let box = Box<Result>()
        execute {
            let result = body()
            monitor.change { box.value = result }
        }
        guard monitor.wait(within: .seconds(30), until: { box.value != nil }), let value = box.value else {
            fatalError("the loop is blocked")
        }
        return value
    }

    /// `@unchecked Sendable`: guarded by the monitor.
    private final class Box<Value>: @unchecked Sendable {
        var value: Value?
    }
}
