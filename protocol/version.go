package protocol

// Version is the version of the wire format written by this build. It is the field v of every message.
const Version = 1

// CheckVersion returns an *Error of code unsupported_version for a message that this build cannot read, and nil otherwise.
func CheckVersion(got int) error {
	if got == Version {
		return nil
	}
	return Errorf(CodeUnsupportedVersion, "message version %d is not supported: this build speaks %d; upgrade the older side", got, Version)
}
