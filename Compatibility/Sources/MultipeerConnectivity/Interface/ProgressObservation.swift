// Foundation has no observation of key paths on Linux. Programs use it for the progress of a resource. In its place
// there is something that looks at the value 20 times a second, and so works for every `Progress`.

/// Options of an observation, as in Apple's Foundation.
public struct NSKeyValueObservingOptions: OptionSet, Sendable {
    /// The number that stands for the options.
    public let rawValue: UInt

    /// Creates options from their number.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The changed value, which observers get in any case.
    public static let new = NSKeyValueObservingOptions(rawValue: 1)
    /// The value before, which observers get in any case.
    public static let old = NSKeyValueObservingOptions(rawValue: 2)
    /// A call with the present value before `observe` returns.
    public static let initial = NSKeyValueObservingOptions(rawValue: 4)
}

/// A change of an observed value.
public struct NSKeyValueObservedChange<Value> {
    /// The value now.
    public let newValue: Value?
    /// The value at the call before; nil in the call that `.initial` asks for.
    public let oldValue: Value?
}

/// An observation. It ends when it is invalidated or let go of.
///
/// `@unchecked Sendable`: a timer may be cancelled on any thread.
public final class NSKeyValueObservation: NSObject, @unchecked Sendable {
    private let timer: any DispatchSourceTimer

    fileprivate init(_ timer: any DispatchSourceTimer) { self.timer = timer }

    deinit { timer.cancel() }

    /// Ends the observation. A call that has begun still returns.
    public func invalidate() { timer.cancel() }
}

extension Progress {
    private static let observers = DispatchQueue(label: "nigh.multipeer.progress")

    /// Observes a value of the progress. Calls `changeHandler` on a queue of the module, within 50 ms of a change. Of
    /// several changes within that time it reports only the last.
    public func observe<Value: Equatable>(
        _ keyPath: KeyPath<Progress, Value>, options: NSKeyValueObservingOptions = [],
        changeHandler: @escaping (Progress, NSKeyValueObservedChange<Value>) -> Void
    ) -> NSKeyValueObservation {
        var last = self[keyPath: keyPath]
        if options.contains(.initial) {
            changeHandler(self, NSKeyValueObservedChange(newValue: last, oldValue: nil))
        }
        let timer = DispatchSource.makeTimerSource(queue: Self.observers)
        timer.schedule(deadline: .now(), repeating: .milliseconds(50))
        // The observation keeps the progress: its end would not be reported if the module were the last to hold it.
        timer.setEventHandler { [self] in
            guard case let value = self[keyPath: keyPath], value != last else { return }
            let change = NSKeyValueObservedChange(newValue: value, oldValue: last)
            last = value
            changeHandler(self, change)
        }
        timer.activate()
        return NSKeyValueObservation(timer)
    }
}
