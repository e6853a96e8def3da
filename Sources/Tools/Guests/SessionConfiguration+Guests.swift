import NighCore
import NighWeb

extension SessionConfiguration {
    /// Lets guests in and shows them the programs' page, if one of these transports has guests.
    public mutating func admitGuests(over transports: [any Transport], with reception: GuestReception) {
        let inner = transports.lazy.map { CheckedTransport.transport(inside: $0) }
        guard let web = inner.compactMap({ $0 as? WebTransport }).first else { return }
        web.page = .ofPrograms
        admitsUnencryptedGuests = true
        layers.append(reception)
    }
}
