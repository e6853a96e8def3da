import NighCore

/// A record by which a side lists its published actors to the other. docs/reference/PROTOCOL.md describes the bytes.
package enum ListingRecord: Equatable {
    case published(name: String, contract: String, version: UInt32)
    case unpublished(name: String)

    private enum Kind: UInt8 {
        case published = 1
        case unpublished = 2
    }

    /// The most bytes of a record, without its length.
    package static let longest = 1 + 256 + 256 + 4

    /// The record as it is sent, with its length in front.
    package var frame: ByteSlice {
        StreamMessageParser.frame { fields in
            switch self {
            case .published(let name, let contract, let version):
                fields.write(Kind.published.rawValue)
                fields.write(short: name)
                fields.write(short: contract)
                fields.write(version)
            case .unpublished(let name):
                fields.write(Kind.unpublished.rawValue)
                fields.write(short: name)
            }
        }
    }

    /// Reads a record without its length. Returns nil if it is of a kind that a later version has.
    package init?(reading message: ByteSlice) throws(WireError) {
        let read = try message.withUnsafeBytes { bytes throws(WireError) -> ListingRecord? in
            var fields = FieldReader(bytes)
            let kind = Kind(rawValue: try fields.number(UInt8.self, "the kind of a listing's record"))
            guard let kind else { return nil }
            let name = try fields.shortText("the name of an actor")
            guard ActorStream.isName(name) else { throw .malformed("an actor with an impossible name") }
            var record = ListingRecord.unpublished(name: name)
            if kind == .published {
                let contract = try fields.shortText("the contract of an actor")
                let version = try fields.number(UInt32.self, "the version of a contract")
                guard ActorStream.isName(contract) else {
                    throw .malformed("a contract with an impossible name")
                }
                record = .published(name: name, contract: contract, version: version)
            }
            try fields.finish("a listing's record")
            return record
        }
        guard let read else { return nil }
        self = read
    }
}
