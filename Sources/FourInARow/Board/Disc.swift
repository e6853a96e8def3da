/// The colour of a disc.
public enum Disc: UInt8, Hashable, Sendable, CaseIterable {
    case red
    case yellow

    /// The other colour.
    public var other: Disc { self == .red ? .yellow : .red }
}
