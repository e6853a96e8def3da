/// What a conformance check needs of a wire. A check that needs more than the rig has is skipped.
public struct ConformanceNeeds: Hashable, Sendable, CustomStringConvertible {
    /// Transports on the wire at the same time. Checks use more of them where the rig has more.
    public let ends: Int
    /// Pipes at the same time from one transport to another.
    public let pipes: Int
    /// Whether it needs an address at which nobody answers.
    public let silentAddress: Bool

    /// Whether the pipes lead from each of two transports to the other.
    private let eachWay: Bool

    init(ends: Int = 2, pipes: Int = 1, eachWay: Bool = false, silentAddress: Bool = false) {
        self.ends = ends
        self.pipes = pipes
        self.eachWay = eachWay
        self.silentAddress = silentAddress
    }

    /// "2 ends, 1 pipe".
    public var description: String {
        "\(ends) \(ends == 1 ? "end" : "ends"), \(pipes) \(pipes == 1 ? "pipe" : "pipes")"
            + (silentAddress ? ", a silent address" : "")
    }

    /// What it needs that the rig does not have, to stand behind "it needs"; nil when the rig has everything.
    func shortage(in rig: TransportRig) -> String? {
        if ends > rig.endsAtOnce { return "more than \(rig.endsAtOnce) ends" }
        if pipes > rig.pipesAtOnce, !(eachWay && rig.allowsPipeEachWay) {
            return "more than \(rig.pipesAtOnce) \(rig.pipesAtOnce == 1 ? "pipe" : "pipes") at once"
        }
        if silentAddress, rig.silentAddress == nil { return "an address at which nobody answers" }
        return nil
    }
}
