#!/bin/sh
# Make the certificates of this folder anew, with openssl.  Their keys guard nothing: only tests
# trust ca.pem, and only for servers on loopback.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > ca.cnf <<'END'
[ca]
default_ca = own
[own]
dir = .
database = index.txt
serial = serial
new_certs_dir = .
policy = names
copy_extensions = copy
unique_subject = no
[names]
commonName = supplied
END
touch index.txt
echo 01 > serial
new_key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
this_machine="DNS:localhost,IP:127.0.0.1"

openssl req -x509 $new_key -keyout ca.key -out "$here/ca.pem" -days 36500 \
    -subj "/CN=Hearsay tests only" -addext "basicConstraints=critical,CA:TRUE" \
    -addext "keyUsage=critical,keyCertSign,cRLSign"

signed() { # name, host, alternative names, last day, hash
    openssl req -new $new_key -keyout key -out request -subj "/CN=$2" \
        -addext "subjectAltName=$3" -addext "basicConstraints=CA:FALSE" \
        -addext "extendedKeyUsage=serverAuth"
    openssl ca -batch -config ca.cnf -cert "$here/ca.pem" -keyfile ca.key -in request \
        -out certificate -notext -startdate 20200101000000Z -enddate "$4" -md "$5"
    cat key certificate > "$here/$1.pem"
}
signed good localhost "$this_machine" 21200101000000Z sha256
signed expired localhost "$this_machine" 20200201000000Z sha256
signed wrong_host elsewhere.example DNS:elsewhere.example 21200101000000Z sha256
signed sha1 localhost "$this_machine" 21200101000000Z sha1

openssl req -x509 $new_key -keyout key -out certificate -days 36500 -subj "/CN=localhost" \
    -addext "subjectAltName=$this_machine"
cat key certificate > "$here/self_signed.pem"
