/// The properties of the wire that a conformance check needs. A check that needs more than the rig has is skipped.
public struct ConformanceNeeds: Hashable, Sendable, CustomStringConvertible {
    /// The number of transports on the wire at the same time. Checks use more if the rig has more.
    public let ends: Int
    /// The number of pipes at the same time from one transport to another.
    public let pipes: Int
    /// Whether the check needs an address at which nobody answers.
    public let silentAddress: Bool

    /// Whether the pipes lead both ways between two transports, one each way.
    private let eachWay: Bool

    init(ends: Int = 2, pipes: Int = 1, eachWay: Bool = false, silentAddress: Bool = false) {
        self.ends = ends
        self.pipes = pipes
        self.eachWay = eachWay
        self.silentAddress = silentAddress
    }

    /// A short list such as "2 ends, 1 pipe".
    public var description: String {
        "\(ends) \(ends == 1 ? "end" : "ends"), \(pipes) \(pipes == 1 ? "pipe" : "pipes")"
            + (silentAddress ? ", a silent address" : "")
    }

    /// Returns what the rig lacks, worded to follow "it needs"; nil if it lacks nothing.
    func missing(in rig: TransportRig) -> String? {
        if ends > rig.endsAtOnce { return "more than \(rig.endsAtOnce) ends" }
        if pipes > rig.pipesAtOnce, !(eachWay && rig.allowsPipeEachWay) {
            return "more than \(rig.pipesAtOnce) \(rig.pipesAtOnce == 1 ? "pipe" : "pipes") at once"
        }
        if silentAddress, rig.silentAddress == nil { return "an address at which nobody answers" }
        return nil
    }
}
