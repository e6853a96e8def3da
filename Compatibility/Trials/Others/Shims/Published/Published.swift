// The part of Combine that Foundation brings on Apple's systems, as far as one module needs it.
/// An object that others watch.
public protocol ObservableObject: AnyObject {}

/// A property that others watch, which nobody does here.
@propertyWrapper public struct Published<Value> {
    /// The value.
    public var wrappedValue: Value
    /// Wraps a value.
    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
}
