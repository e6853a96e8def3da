/// Why two peers were not paired. An unknown reason from a later version counts as `declined`.
public enum PairingRefusal: UInt8, Hashable, Sendable, CaseIterable {
    /// The remote person did not want to be paired, or changed their mind.
    case declined = 0
    /// The remote person saw other digits, so somebody may be between the devices.
    case digitsDiffer = 1
    /// The other side is being paired with another peer.
    case busy = 2
    /// The remote program does not accept pairing now.
    case notNow = 3
    /// Nobody at the other side answered in time.
    case timedOut = 4
}
