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

    /// The module of the type.
    var module: Substring { path.prefix { $0 != "." } }

    /// Whether the actor conforms to the protocol of the contract. The type that `@Resolvable` makes stands for it.
    func isMet(by actor: some DistributedActor) -> Bool {
        func conforms<Protocol>(to type: Protocol.Type) -> Bool { actor is Protocol }
        // "6$BoardC" at the end becomes "5Board_p".
        let own = "\(name.utf8.count + 1)$\(name)C"
        guard let type = MangledName(prefix.dropFirst(2))?.spelledOut, type.hasSuffix(own),
            let existential = MangledName(type.dropLast(own.count) + "\(name.utf8.count)\(name)_p"),
            let type = _typeByName(existential.abbreviated())
        else { return false }
        return _openExistential(type, do: conforms)
    }

    /// Whether a call that a peer names so is one of a method of this contract: "Board.play(column:) SIGNATURE".
    func isNamed(in wireName: String) -> Bool {
        let rest = wireName.utf8.dropFirst(name.utf8.count)
        return rest.first == UInt8(ascii: ".") && wireName.utf8.starts(with: name.utf8)
    }

    /// The method that a peer names; nil if the program has none of that name.
    func method(named wireName: String) -> ActorMethod? {
        guard isNamed(in: wireName), let space = wireName.utf8.lastIndex(of: UInt8(ascii: " ")),
            let name = MangledName(wireName[wireName.utf8.index(after: space)...])
        else { return nil }
        return existingMethod(name)
    }

    /// The method of this type that a protocol's method of the same module is; nil if it has its body elsewhere.
    func method(for method: ActorMethod, of contract: ActorContract) -> ActorMethod? {
        guard let name = MangledName(method.signature) else { return nil }
        return name.moved(fromType: "$\(contract.name)").lazy.compactMap(existingMethod).first
    }

    /// The method with this name. The runtime may need hours to read a name of 300 bytes that a peer has made up, and
    /// makes the types in it. So the name is first compared with those of the distributed methods of the program.
    private func existingMethod(_ name: MangledName) -> ActorMethod? {
        var target = prefix + name.abbreviated(behind: prefix)
        let exists = target.withUTF8 { name in
            name.baseAddress.map { findAccessibleFunction($0, name.count) != nil } ?? false
        }
        return exists ? method(name, target) : nil
    }

    /// The method of this name, if the type itself can have one: of a type inside it, the methods are not its own.
    private func method(_ signature: MangledName, _ target: String) -> ActorMethod? {
        let words = RemoteCallTarget(target).description
        // Of a type that lies in others, the runtime gives the last name only.
        let parts = path.split(separator: ".")
        let type = parts.count == 2 ? path : String(parts.last ?? "")
        guard signature.beginsAsMethod, words.hasPrefix(type + ".") else { return nil }
        let call = words.dropFirst(type.count + 1)
        guard !call.isEmpty, !call.prefix(while: { $0 != "(" }).contains(where: { $0 == "." || $0 == " " })
        else { return nil }
        return ActorMethod(
            target: target, name: "\(name).\(call)", wireName: "\(name).\(call) \(signature.spelledOut)")
    }

    /// The method of a call that this program makes.
    func method(of target: RemoteCallTarget) -> ActorMethod? {
        guard target.identifier.hasPrefix(prefix),
            let name = MangledName(target.identifier.dropFirst(prefix.count), behind: prefix),
            prefix + name.abbreviated(behind: prefix) == target.identifier
        else { return nil }
        return method(name, target.identifier)
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
}

/// Finds the function that the runtime calls for a distributed method.
@_silgen_name("swift_findAccessibleFunction")
private func findAccessibleFunction(_ name: UnsafePointer<UInt8>, _ count: Int) -> UnsafeRawPointer?
