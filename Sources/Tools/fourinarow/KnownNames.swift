import FourInARow
import SessionArguments

extension Asker {
    /// What the person is to know before they let them.
    var warning: PeerWarning? { PeerWarning(id, name: name, trust: trust) }
}

extension TableListing {
    /// What the person is to know before they go there.
    var warning: PeerWarning? { PeerWarning(id, name: name, trust: trust) }
}
