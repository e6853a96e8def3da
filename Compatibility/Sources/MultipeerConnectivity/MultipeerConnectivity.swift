// The module of Apple's name, for Linux. What programs use is in Interface/; what it does with Nigh is in the other
// folders.

@_exported import Foundation
@_exported import MultipeerConnectivity
