import Distributed
import Nigh
import NighCore

extension ActorSystem {
    /// Encodes the arguments of a call, as a sequence of CBOR values.
    public struct InvocationEncoder: DistributedTargetInvocationEncoder {
        /// Values travel if they are `Codable`.
        public typealias SerializationRequirement = Codable

        let values: ValueContext
        private let writer: CBORSequenceWriter

        init(_ values: ValueContext) {
            self.values = values
            writer = CBORSequenceWriter(in: values)
        }

        var bytes: [UInt8] { writer.bytes }

        /// Fails for a method with generic parameters, which cannot be called. Passes the type that stands for a
        /// protocol with `@Resolvable`.
        public mutating func recordGenericSubstitution<Type>(_ type: Type.Type) throws {
            if type is any _DistributedActorStub.Type { return }
            throw NighError(
                .calling, .invalid("method: it has the generic parameter \(type)"),
                advice: "declare it with a type that is not generic")
        }

        /// Encodes the next argument.
        public mutating func recordArgument<Value: Codable>(_ argument: RemoteCallArgument<Value>) throws {
            do {
                try writer.append(argument.value)
            } catch {
                throw NighError(
                    .calling,
                    .invalid("argument \"\(argument.effectiveLabel)\": it cannot be encoded: \(error)"))
            }
        }

        /// Does nothing: errors travel by an allow-list.
        public mutating func recordErrorType<Failure: Error>(_ type: Failure.Type) throws {}
        /// Does nothing: the caller knows the type.
        public mutating func recordReturnType<Success: Codable>(_ type: Success.Type) throws {}
        /// Does nothing.
        public mutating func doneRecording() throws {}
    }

    /// Decodes the arguments of a call that a peer makes. The types are those of the method; none is named by the peer.
    public struct InvocationDecoder: DistributedTargetInvocationDecoder {
        /// Values travel if they are `Codable`.
        public typealias SerializationRequirement = Codable

        /// The type that stands in for `Self` of a protocol's method.
        private let substitution: any Any.Type
        private var reader: CBORSequenceReader

        /// Arguments that are no values of the types of the method.
        struct Unreadable: Error {
            let reason: String
        }

        init(_ arguments: ByteSlice, _ values: ValueContext, substitution: any Any.Type) throws {
            do {
                reader = try CBORSequenceReader(arguments, in: values)
            } catch {
                throw Unreadable(reason: "\(error)")
            }
            self.substitution = substitution
        }

        /// The type of the actor that is called, for the method of a protocol.
        public mutating func decodeGenericSubstitutions() throws -> [any Any.Type] { [substitution] }

        /// Decodes the next argument.
        public mutating func decodeNextArgument<Argument: Codable>() throws -> Argument {
            do {
                return try reader.next(Argument.self)
            } catch {
                throw Unreadable(reason: "\(error)")
            }
        }

        /// Returns nil: errors travel by an allow-list.
        public mutating func decodeErrorType() throws -> (any Any.Type)? { nil }
        /// Returns nil: the method itself has its return type.
        public mutating func decodeReturnType() throws -> (any Any.Type)? { nil }
    }

    /// Keeps the result of a call, encoded.
    public final class ResultHandler: DistributedTargetInvocationResultHandler {
        /// Values travel if they are `Codable`.
        public typealias SerializationRequirement = Codable

        enum Result {
            case value([UInt8])
            case failure(any Error)
        }

        private let values: ValueContext
        private(set) var result: Result?

        init(_ values: ValueContext) { self.values = values }

        /// Encodes the result.
        public func onReturn<Success: Codable>(value: Success) async throws {
            do {
                let writer = CBORSequenceWriter(in: values)
                try writer.append(value)
                result = .value(writer.bytes)
            } catch {
                result = .failure(
                    NighError(.calling, .invalid("result: it cannot be encoded: \(error)")))
            }
        }

        /// Notes that the call has ended.
        public func onReturnVoid() async throws { result = .value([]) }

        /// Keeps the error.
        public func onThrow<Failure: Error>(error: Failure) async throws { result = .failure(error) }
    }
}
