import Dispatch

/// The queue on which this module decides: who is invited, who is in a session, which engine is used. Only messages,
/// streams and resources go past it.
///
/// Its work never waits for a program's code, so a program may wait for it.
enum Control {
    /// Marks the queue.
    private static let mark = DispatchSpecificKey<Bool>()
    private static let queue = {
        let queue = DispatchQueue(label: "nigh.multipeer.control")
        queue.setSpecific(key: mark, value: true)
        return queue
    }()

    static func async(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }

    /// Runs `work` and returns its result. On the queue itself at once: letting go of a program's object there can end
    /// sessions.
    static func sync<Value>(_ work: () throws -> Value) rethrows -> Value {
        DispatchQueue.getSpecific(key: mark) == true ? try work() : try queue.sync(execute: work)
    }

    static func after(_ seconds: TimeInterval, _ work: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: .now() + seconds, execute: work)
    }
}

/// A value that goes to another thread and is used there only, although its type does not say that it may.
struct Handover<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}

/// A delegate: the program sets it on one thread, and it is called on another.
///
/// `@unchecked Sendable`: the lock protects the reference.
final class DelegateBox: @unchecked Sendable {
    private let lock = NSLock()
    private weak var object: AnyObject?

    var value: AnyObject? {
        get { lock.withLock { object } }
        set { lock.withLock { object = newValue } }
    }
}
