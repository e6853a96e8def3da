/// One of the two colours of discs.
public enum Disc: UInt8, Hashable, Sendable, CaseIterable {
    case red
    case yellow

    /// The other colour.
    public var other: Disc { self == .red ? .yellow : .red }
}
