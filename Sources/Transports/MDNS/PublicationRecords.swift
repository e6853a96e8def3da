import CAvahi

/// The records of a publication, as both of Avahi's libraries take them.
extension Publication {
    struct Record: Hashable, Sendable {
        let name: DomainName
        let type: RecordType
        let data: [UInt8]
        let flags: Flags
    }

    /// How Avahi treats a record.
    struct Flags: OptionSet, Hashable, Sendable {
        let rawValue: UInt32

        /// Nobody else may have one of that name and type.
        static let unique = Flags(rawValue: AVAHI_PUBLISH_UNIQUE.rawValue)
        /// The network is not asked first whether somebody has.
        static let unasked = Flags(rawValue: AVAHI_PUBLISH_NO_PROBE.rawValue)
        /// In place of the one that stands.
        static let update = Flags(rawValue: AVAHI_PUBLISH_UPDATE.rawValue)
        /// An address without a record that leads from it to the name.
        static let oneWay = Flags(rawValue: AVAHI_PUBLISH_NO_REVERSE.rawValue)

        var avahi: AvahiPublishFlags { AvahiPublishFlags(rawValue: rawValue) }
    }

    /// All of them, to be seen at once.
    var records: [Record] {
        [
            Record(name: type, type: .pointer, data: instance.wire, flags: .unasked),
            Record(name: Self.types, type: .pointer, data: type.wire, flags: .unasked),
            Record(name: instance, type: .service, data: service.data, flags: [.unique, .unasked]),
            Record(name: instance, type: .text, data: text.data, flags: [.unique, .unasked]),
        ]
    }

    /// The SRV record again, to be added once all stand. From here on Avahi defends it: whenever somebody else turns up
    /// with another one of that name, both ask, and one of the two is told of a collision. One record only, since of two
    /// each side could lose one.
    var guarded: Record {
        Record(name: instance, type: .service, data: service.data, flags: [.unique, .update])
    }

    /// The text, to be added in place of the one before.
    var updatedText: Record {
        Record(name: instance, type: .text, data: text.data, flags: [.unique, .unasked, .update])
    }
}
