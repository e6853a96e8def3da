import Distributed
import NighCalls

/// A contract that has versions. Conform a protocol with `@Resolvable` to it, and give the version in an extension.
///
/// A peer whose contract lacks a method, or has it with other types, answers its calls with an error that names both
/// versions. So the version is for people; adding methods needs no new one.
public protocol VersionedContract {
    /// The version of the contract.
    static var contractVersion: UInt32 { get }
}

/// The methods that peers may call on an actor: those of a protocol with `@Resolvable`, or of a type of actors.
struct ActorContract: Sendable, Equatable {
    /// The name of the protocol or type, as peers see it.
    let name: String
    /// How the runtime names the type that declares the methods: in front of the signature of each.
    let prefix: String
    /// The type with its module in front, as it stands in descriptions.
    private let path: String
    let version: UInt32

    /// The contract of a type: of an actor, or of the `$Name` that `@Resolvable` makes for a protocol `Name`. Returns
    /// nil for a type that has no stable name.
    init?<Act: DistributedActor>(_ type: Act.Type) {
        guard let mangled = _mangledTypeName(type) else { return nil }
        prefix = "$s" + mangled
        path = _typeName(type, qualified: true)
        let last = path.split(separator: ".").last ?? ""
        name = String(last.first == "$" ? last.dropFirst() : last)
        version = (type as? any VersionedContract.Type)?.contractVersion ?? 0
        guard ActorStream.isName(name), !path.contains(" "), !path.contains("<") else { return nil }
    }

    /// Whether the actor conforms to the protocol of the contract. The type that `@Resolvable` makes stands for it.
    func isMet(by actor: some DistributedActor) -> Bool {
        func conforms<Protocol>(to type: Protocol.Type) -> Bool { actor is Protocol }
        // "6$BoardC" at the end becomes "5Board_p".
        let own = "\(name.utf8.count + 1)$\(name)C"
        guard prefix.hasSuffix(own),
            let type = _typeByName(prefix.dropFirst(2).dropLast(own.count) + "\(name.utf8.count)\(name)_p")
        else { return false }
        return _openExistential(type, do: conforms)
    }

    /// Whether a call that a peer names so is one of a method of this contract: "Board.play(column:) SIGNATURE".
    func isNamed(in wireName: String) -> Bool {
        let rest = wireName.utf8.dropFirst(name.utf8.count)
        return rest.first == UInt8(ascii: ".") && wireName.utf8.starts(with: name.utf8)
    }

    /// The method that a peer names, if the contract may have it.
    func method(named wireName: String) -> ActorMethod? {
        guard isNamed(in: wireName), let space = wireName.utf8.lastIndex(of: UInt8(ascii: " ")) else {
            return nil
        }
        return method(wireName[wireName.utf8.index(after: space)...])
    }

    /// The method with this signature, if the type itself can have one: of a type inside it, the methods are not its
    /// own.
    func method(_ signature: Substring) -> ActorMethod? {
        guard signature.utf8.allSatisfy(Self.isOfSignature) else { return nil }
        let target = prefix + signature
        let words = RemoteCallTarget(target).description
        guard words.hasPrefix(path + ".") else { return nil }
        let call = words.dropFirst(path.count + 1)
        guard !call.isEmpty, !call.prefix(while: { $0 != "(" }).contains(where: { $0 == "." || $0 == " " })
        else { return nil }
        return ActorMethod(
            target: target, name: "\(name).\(call)", wireName: "\(name).\(call) \(signature)")
    }

    /// The method of a call that this program makes.
    func method(of target: RemoteCallTarget) -> ActorMethod? {
        guard target.identifier.hasPrefix(prefix) else { return nil }
        return method(target.identifier.dropFirst(prefix.count))
    }

    private static func isOfSignature(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"):
            true
        default: false
        }
    }
}

/// A method of a contract.
struct ActorMethod: Sendable {
    /// The method, as the runtime names it.
    let target: String
    /// The method for people: "Board.play(column:)".
    let name: String
    /// The method as it is named to a peer: the name, and the runtime's own name without the type that declares the
    /// method. Types are part of that, so both sides mean the same method or none.
    let wireName: String

    /// The runtime's name for the method without the type that declares it.
    var signature: Substring { wireName.dropFirst(name.count + 1) }

    /// Whether names in the signature may be abbreviated: a zero where a length could stand, and then letters for words
    /// that came before, such as those of the type that declares the method. Behind another type, it means others.
    var refersToWordsOfType: Bool {
        zip(" " + signature, signature).contains { before, next in next == "0" && !before.isNumber }
    }
}
