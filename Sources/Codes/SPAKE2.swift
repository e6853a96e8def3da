import COpenSSL
import NighCore

/// One side of SPAKE2 (RFC 9382) on P-256 with SHA-256, HKDF and HMAC: two sides that know the same password agree on
/// keys, and a side that does not know it learns only whether its one guess was right.
///
/// Each side sends its `share` and passes the other's to `finish`. The curve's arithmetic is libcrypto's.
final class SPAKE2 {
    /// The side that RFC 9382 calls A or B. The two differ in the point that hides the share.
    enum Role {
        case a, b
    }

    /// The two identities that both sides agree on, as they must be named in the transcript.
    struct Identities {
        let a: [UInt8]
        let b: [UInt8]
    }

    /// The keys that follow from both shares and the password. Equal on both sides if the passwords were.
    struct Keys {
        /// The key that both sides may use from now on (`Ke`).
        let shared: SecretBytes
        /// The bytes that prove side A's knowledge to side B (`cA`).
        let confirmationOfA: [UInt8]
        /// The bytes that prove side B's knowledge to side A (`cB`).
        let confirmationOfB: [UInt8]
    }

    /// The size of a password's scalar and of a secret number.
    static let scalarByteCount = 32
    /// The size of a share: an uncompressed point.
    static let shareByteCount = 65

    private static let pointOfA = bytes(
        of: "02886e2f97ace46e55ba9dd7242579f2993b64e16ef3dcab95afd497333d8fa12f")
    private static let pointOfB = bytes(
        of: "03d8bbd6c639c62937b04d997f38c3770719c629d7014d49a24b4f98baa1292b49")

    private let role: Role
    private let curve: Curve
    private let password: Scalar
    private let secret: Scalar
    /// The bytes for the other side. They reveal nothing of the password.
    let share: [UInt8]

    /// Creates a side.
    ///
    /// - Parameters:
    ///   - password: A number derived from the password with a memory-hard function, in network order. It is reduced
    ///     modulo the order of the curve.
    ///   - secret: This side's random number. Only tests pass one; by default it comes from libcrypto's private random
    ///     numbers.
    init(role: Role, password: SecretBytes, secret: SecretBytes? = nil) {
        let curve = Curve()
        self.role = role
        self.curve = curve
        self.password = Scalar(password, on: curve)
        self.secret = secret.map { Scalar($0, on: curve) } ?? Scalar.random(on: curve)
        let mask = curve.multiply(Self.mask(of: role, on: curve), by: self.password)
        share = curve.encode(curve.add(curve.multiplyGenerator(by: self.secret), mask))
    }

    private static func mask(of role: Role, on curve: Curve) -> Curve.Point {
        guard let point = curve.decode(role == .a ? pointOfA : pointOfB) else {
            preconditionFailure("a point of the standard is not on the curve")
        }
        return point
    }

    /// Returns the keys, given the other side's share. Nil if that is no share: not a point of the curve, or one that
    /// makes the result the same for every secret.
    ///
    /// - Parameter context: Further bytes that both sides must agree on, such as the identity of their connection.
    func finish(with other: [UInt8], _ identities: Identities, context: [UInt8]) -> Keys? {
        guard other.count == Self.shareByteCount, other.first == 4, let point = curve.decode(other) else {
            return nil
        }
        let mask = curve.multiply(Self.mask(of: role == .a ? .b : .a, on: curve), by: password)
        curve.invert(mask)
        let plain = curve.add(point, mask)
        guard !curve.isInfinity(plain) else { return nil }
        let product = curve.encodeSecretly(curve.multiply(plain, by: secret))
        let (shareOfA, shareOfB) = role == .a ? (share, other) : (other, share)
        let transcript = Self.transcript(identities, shareOfA, shareOfB, product, password.bytes)
        let (shared, confirming) = transcript.withBytes { bytes in
            SecretBytes(copying: SHA256.hash(UnsafeRawBufferPointer(bytes))).halves
        }
        let (keyOfA, keyOfB) = Self.confirmationKeys(from: confirming, context: context).halves
        return Keys(
            shared: shared,
            confirmationOfA: Self.bytes(of: Self.authenticate(transcript, with: keyOfA)),
            confirmationOfB: Self.bytes(of: Self.authenticate(transcript, with: keyOfB)))
    }

    /// Returns whether two confirmations are equal, in a time that does not depend on where they differ.
    static func areEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one.count == other.count && CRYPTO_memcmp(one, other, one.count) == 0
    }

    // MARK: The key schedule

    /// Returns the transcript: all parts, each after its length as eight bytes, the lowest first.
    private static func transcript(
        _ identities: Identities, _ shareOfA: [UInt8], _ shareOfB: [UInt8], _ product: SecretBytes,
        _ password: SecretBytes
    ) -> SecretBytes {
        let open = [identities.a, identities.b, shareOfA, shareOfB]
        let size = open.reduce(0) { $0 + 8 + $1.count } + 8 + product.count + 8 + password.count
        let result = SecretBytes(count: size)
        result.withBytes { bytes in
            var rest = bytes[...]
            func append(_ part: some Collection<UInt8>) {
                UnsafeMutableRawBufferPointer(rebasing: rest).copyBytes(from: part)
                rest = rest.dropFirst(part.count)
            }
            func appendWithLength(_ part: some Collection<UInt8>) {
                append((0..<8).map { UInt8(truncatingIfNeeded: part.count >> (8 * $0)) })
                append(part)
            }
            for part in open { appendWithLength(part) }
            product.withBytes { appendWithLength($0) }
            password.withBytes { appendWithLength($0) }
        }
        return result
    }

    /// Returns the keys of both confirmations: HKDF without a salt. One block of it is exactly both.
    private static func confirmationKeys(from key: SecretBytes, context: [UInt8]) -> SecretBytes {
        let extracted = authenticate(key, with: SecretBytes(count: SHA256.byteCount))
        let info = Array("ConfirmationKeys".utf8) + context + [1]
        return info.withUnsafeBytes { SHA256.authenticate($0, with: extracted) }
    }

    /// Returns HMAC-SHA256.
    private static func authenticate(_ message: SecretBytes, with key: SecretBytes) -> SecretBytes {
        message.withBytes { SHA256.authenticate(UnsafeRawBufferPointer($0), with: key) }
    }

    private static func bytes(of secret: SecretBytes) -> [UInt8] { secret.withBytes { Array($0) } }

    private static func bytes(of hexadecimal: String) -> [UInt8] {
        let digits = hexadecimal.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
    }
}

/// A number modulo the order of the curve. libcrypto overwrites it when it is freed.
private final class Scalar {
    fileprivate let number: OpaquePointer
    /// The number in network order.
    let bytes: SecretBytes

    init(_ text: SecretBytes, on curve: Curve) {
        guard
            let number = text.withBytes({
                BN_bin2bn($0.bindMemory(to: UInt8.self).baseAddress, Int32($0.count), nil)
            })
        else { preconditionFailure("libcrypto has no memory") }
        let done = BN_nnmod(number, number, curve.order, curve.context)
        precondition(done == 1 && BN_is_zero(number) == 0, "a scalar that is zero")
        BN_set_flags(number, BN_FLG_CONSTTIME)
        self.number = number
        bytes = SecretBytes(count: SPAKE2.scalarByteCount)
        let count = bytes.withBytes {
            BN_bn2binpad(number, $0.bindMemory(to: UInt8.self).baseAddress, Int32($0.count))
        }
        precondition(count == SPAKE2.scalarByteCount)
    }

    deinit { BN_clear_free(number) }

    /// Returns a random number, of twice as many bits as the order has, so that the rest is uniform.
    static func random(on curve: Curve) -> Scalar {
        Scalar(.random(count: 2 * SPAKE2.scalarByteCount), on: curve)
    }
}

/// The curve P-256 in libcrypto. Its calls fail only without memory, which ends the program.
private final class Curve {
    /// A point that is freed with its last reference.
    final class Point {
        fileprivate let pointer: OpaquePointer

        fileprivate init(on curve: Curve) {
            guard let pointer = EC_POINT_new(curve.group) else {
                preconditionFailure("libcrypto has no memory")
            }
            self.pointer = pointer
        }

        deinit { EC_POINT_clear_free(pointer) }
    }

    fileprivate let group: OpaquePointer
    fileprivate let context: OpaquePointer
    fileprivate var order: OpaquePointer? { EC_GROUP_get0_order(group) }

    init() {
        OpenSSLLifetime.extend()
        guard let group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1), let context = BN_CTX_secure_new()
        else {
            preconditionFailure("libcrypto lacks P-256")
        }
        (self.group, self.context) = (group, context)
    }

    deinit {
        EC_GROUP_free(group)
        BN_CTX_free(context)
    }

    /// Multiplies with one scalar only, which libcrypto does in constant time.
    func multiplyGenerator(by scalar: Scalar) -> Point {
        let result = Point(on: self)
        check(EC_POINT_mul(group, result.pointer, scalar.number, nil, nil, context))
        return result
    }

    func multiply(_ point: Point, by scalar: Scalar) -> Point {
        let result = Point(on: self)
        check(EC_POINT_mul(group, result.pointer, nil, point.pointer, scalar.number, context))
        return result
    }

    func add(_ one: Point, _ other: Point) -> Point {
        let result = Point(on: self)
        check(EC_POINT_add(group, result.pointer, one.pointer, other.pointer, context))
        return result
    }

    func invert(_ point: Point) { check(EC_POINT_invert(group, point.pointer, context)) }

    func isInfinity(_ point: Point) -> Bool { EC_POINT_is_at_infinity(group, point.pointer) == 1 }

    /// Returns the point with this encoding; nil if there is none on the curve.
    func decode(_ bytes: [UInt8]) -> Point? {
        let point = Point(on: self)
        let done = EC_POINT_oct2point(group, point.pointer, bytes, bytes.count, context)
        if done != 1 { ERR_clear_error() }
        return done == 1 && !isInfinity(point) ? point : nil
    }

    func encode(_ point: Point) -> [UInt8] { encodeSecretly(point).withBytes { Array($0) } }

    func encodeSecretly(_ point: Point) -> SecretBytes {
        let bytes = SecretBytes(count: SPAKE2.shareByteCount)
        let count = bytes.withBytes {
            EC_POINT_point2oct(
                group, point.pointer, POINT_CONVERSION_UNCOMPRESSED,
                $0.bindMemory(to: UInt8.self).baseAddress, $0.count, context)
        }
        precondition(count == SPAKE2.shareByteCount, "a point at infinity has no such encoding")
        return bytes
    }

    private func check(_ done: Int32) { precondition(done == 1, "libcrypto has no memory for a point") }
}
