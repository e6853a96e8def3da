/// Why there is no pairing. An unknown reason of a later version counts as `declined`.
public enum PairingRefusal: UInt8, Hashable, Sendable, CaseIterable {
    /// The person over there did not want to, or changed their mind.
    case declined = 0
    /// The person over there saw other digits: somebody may be in between.
    case digitsDiffer = 1
    /// The other side is being paired with somebody else.
    case busy = 2
    /// The program over there does not take part in pairing now.
    case notNow = 3
    /// Nobody over there has answered in time.
    case timedOut = 4
}
