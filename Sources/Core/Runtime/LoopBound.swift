/// Carries something that belongs to a loop through code of other threads, which cannot use it.
///
/// `@unchecked Sendable`: the value is used on the loop only, which debug builds check.
package struct LoopBound<Value>: @unchecked Sendable {
    private let stored: Value
    private let loop: any EventLoop

    package init(_ value: Value, on loop: any EventLoop) {
        stored = value
        self.loop = loop
    }

    /// The value. Loop only.
    package var value: Value {
        assert(loop.isCurrent, "a \(Value.self) was used off its loop")
        return stored
    }

    /// Runs `work` with the value, on the loop. Callable from any thread.
    package func execute(_ work: @escaping @Sendable (Value) -> Void) {
        loop.execute { work(value) }
    }
}

/// Refers to an object without keeping it.
package struct WeakReference<Object: AnyObject> {
    package weak let object: Object?

    package init(_ object: Object) { self.object = object }
}
