import CAvahi

/// The records of a publication, in the form that both of Avahi's libraries take.
extension Publication {
    struct ResourceRecord: Hashable, Sendable {
        let name: DomainName
        let type: RecordType
        let data: [UInt8]
        let flags: Flags
    }

    /// How Avahi treats a record.
    struct Flags: OptionSet, Hashable, Sendable {
        let rawValue: UInt32

        /// Nobody else may have a record of that name and type.
        static let unique = Flags(rawValue: AVAHI_PUBLISH_UNIQUE.rawValue)
        /// The network is not asked first whether somebody has such a record.
        static let withoutProbing = Flags(rawValue: AVAHI_PUBLISH_NO_PROBE.rawValue)
        /// The record replaces the published one.
        static let update = Flags(rawValue: AVAHI_PUBLISH_UPDATE.rawValue)
        /// An address without a reverse record, which would lead from it to the name.
        static let withoutReverse = Flags(rawValue: AVAHI_PUBLISH_NO_REVERSE.rawValue)

        var avahi: AvahiPublishFlags { AvahiPublishFlags(rawValue: rawValue) }
    }

    /// All records, to be visible at once.
    var records: [ResourceRecord] {
        [
            ResourceRecord(name: type, type: .pointer, data: instance.wire, flags: .withoutProbing),
            ResourceRecord(name: Self.types, type: .pointer, data: type.wire, flags: .withoutProbing),
            ResourceRecord(
                name: instance, type: .service, data: service.data, flags: [.unique, .withoutProbing]),
            ResourceRecord(name: instance, type: .text, data: text.data, flags: [.unique, .withoutProbing]),
        ]
    }

    /// The SRV record again, to be added after all records are published. From then on Avahi defends it: when another
    /// host publishes a different record of that name, both ask, and one of the two is notified of a collision. Only
    /// one record is defended, because of two each side could lose one.
    var defendedService: ResourceRecord {
        ResourceRecord(name: instance, type: .service, data: service.data, flags: [.unique, .update])
    }

    /// The text, to be added in place of the one before.
    var updatedText: ResourceRecord {
        ResourceRecord(
            name: instance, type: .text, data: text.data, flags: [.unique, .withoutProbing, .update])
    }
}
